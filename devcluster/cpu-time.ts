import { readFile } from 'node:fs/promises'

/** Linux counts CPU time in hundredths of a second on every architecture that matters. */
const tickMs = 10

/** CPU time that a process has used since its start, in milliseconds; Linux only. */
export async function cpuMsOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8')
  // Behind the name in brackets: state is field 3, utime and stime are 14 and 15 (proc(5)).
  const fields = status.slice(status.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * tickMs
}
