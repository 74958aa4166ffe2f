import { createServer } from 'node:net'
import { InUse } from './data-dir-lock.ts'

/** Throws if the port is in use. The check runs before anything slow starts, so that the error comes at once. */
export async function assertPortFree(host: string, port: number, variable: string): Promise<void> {
  if (port === 0) return
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const inUse = error.code === 'EADDRINUSE'
      const reason = inUse ? 'is in use' : `cannot be used (${error.code})`
      reject(
        new InUse(`Port ${port} on ${host} ${reason}. Set ${variable} to another port; 0 picks a free one.`),
      )
    })
    server.listen({ host, port, exclusive: true }, resolve)
  })
  await new Promise((resolve) => server.close(resolve))
}
