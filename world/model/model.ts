import { injectNextFailure, readBody } from '#world/fault-injection.ts'
import type { FailureInjector } from '#world/injected-failures.ts'
import { type ListeningServer, listen } from '#world/listen.ts'
import { createModelState, modelRoutes } from './state.ts'

type Listen = { preferredPort: number; injector: FailureInjector }

/** A language model that answers by scripts, in the interfaces of OpenAI and Anthropic. */
export const localModelServer = (nowMs: () => number) => {
  const state = createModelState(nowMs)
  const start = ({ preferredPort, injector }: Listen): Promise<ListeningServer> =>
    listen(
      (incoming, answer) => {
        const handle = async () => {
          const body = await readBody(incoming)
          const injection = await injectNextFailure(injector, incoming, answer, body)
          if (injection.type === 'answered') return
          if (injection.dropReply) return incoming.socket.destroy()
          // Loaded with the first request, so that the start of the world does not wait for it.
          const { respond } = await import('./respond.ts')
          await respond(state, incoming, answer, body)
        }
        handle().catch(() => incoming.socket.destroy())
      },
      { preferredPort },
    )
  return { start, routes: modelRoutes(state) }
}
