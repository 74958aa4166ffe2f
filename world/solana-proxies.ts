import type { ListeningServer } from './listen.ts'
import { startProxy } from './proxy.ts'

type Options = Parameters<typeof startProxy>[0]

const triesMax = 20

/**
 * A Solana client expects the subscriptions one port above the JSON-RPC, so two adjacent ports are bound: where the
 * upper one is in use, another pair is tried.
 */
export const startSolanaProxies = async (options: Options): Promise<ListeningServer> => {
  for (let left = triesMax; ; left--) {
    const rpc = await startProxy({ ...options, preferredPort: left === triesMax ? options.preferredPort : 0 })
    const above = rpc.port + 1
    const stream = above > 65_535 ? undefined : await startProxy({ ...options, preferredPort: above })
    if (stream?.port === above) {
      return {
        port: rpc.port,
        close: async () => {
          await Promise.all([rpc.close(), stream.close()])
        },
      }
    }
    await Promise.all([rpc.close(), stream?.close()])
    if (left === 0) throw new Error('No two adjacent ports are free for Solana.')
  }
}
