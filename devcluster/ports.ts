import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below 32768, where Linux starts to give ports to outgoing connections: nobody takes one by accident between this
 * check and its use, or while a server that is being restarted is away.
 */
const range = { from: 20_000, to: 32_000 }

/** Finds `count` different loopback ports that nobody listens on. */
export async function findFreePorts(count: number): Promise<number[]> {
  const found = new Set<number>()
  while (found.size < count) {
    const port = randomInt(range.from, range.to)
    if (await isFree(port)) found.add(port)
  }
  return [...found]
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}
