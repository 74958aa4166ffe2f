import { createAnswerDial } from './answer-dial.ts'
import { startAnswerServer } from './answer-server.ts'
import type { EvmNode } from './evm/node.ts'
import type { FailureInjector } from './injected-failures.ts'
import type { ListeningServer } from './listen.ts'
import type { Route } from './router.ts'
import type { SolanaNode } from './solana-node.ts'

type Deps = { nodes: readonly EvmNode[]; solana: SolanaNode; nowMs: () => number }
type Listen = { preferredPort: number; injector: FailureInjector }

/** Services that judge tokens: honeypot.is and RugCheck. Their code is loaded with the first request. */
export type TokenJudges = {
  startHoneypot: (options: Listen) => Promise<ListeningServer>
  startRugCheck: (options: Listen) => Promise<ListeningServer>
  routes: Route[]
}

export const tokenJudges = ({ nodes, solana, nowMs }: Deps): TokenJudges => {
  const honeypot = createAnswerDial(nowMs)
  const rugCheck = createAnswerDial(nowMs)
  const chains = nodes.map(({ chain, rpc }) => ({ chain, rpc }))

  const askHoneypot = async (url: URL) => {
    if (url.pathname !== '/v2/IsHoneypot') return { status: 404, body: { code: 404, error: 'not found' } }
    const { respondIsHoneypot } = await import('./honeypot/is-honeypot.ts')
    return respondIsHoneypot({ chains }, url.searchParams)
  }
  const askRugCheck = async ({ pathname }: URL) => {
    const { respondReport } = await import('./rugcheck/report.ts')
    return respondReport((method, params) => solana.call(method, params), pathname)
  }
  return {
    startHoneypot: (options) =>
      startAnswerServer({
        ...options,
        respond: (url) => honeypot.answer(url.searchParams.get('address') ?? '', () => askHoneypot(url)),
      }),
    startRugCheck: (options) =>
      startAnswerServer({
        ...options,
        respond: (url) => rugCheck.answer(url.pathname.split('/')[3] ?? '', () => askRugCheck(url)),
      }),
    routes: [...honeypot.routes('/honeypot'), ...rugCheck.routes('/rugcheck')],
  }
}
