import { readFile } from 'node:fs/promises'
import { cpuMsOf } from '../devcluster/cpu-time.ts'

/** Resident memory of a process, in MiB; Linux only. */
export async function rssMiBOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const [, kiB] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? []
  if (kiB === undefined) throw new Error(`/proc/${pid}/status has no VmRSS`)
  return Number(kiB) / 1024
}

/** CPU time that the process used while `work` went on, in milliseconds. */
export async function cpuDuring(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = await cpuMsOf(pid)
  await work()
  return (await cpuMsOf(pid)) - before
}
