import { injectFailure, readBody } from '#world/fault-injection.ts'
import type { FailureInjector } from '#world/injected-failures.ts'
import { type ListeningServer, listen } from '#world/listen.ts'
import { createImageState } from './state.ts'

type Listen = { preferredPort: number; injector: FailureInjector }
type Fal = ReturnType<typeof import('./fal.ts').createFal>

/** A service that paints images, with the protocol of fal. Its files are on the same server. */
export const localImageServer = (nowMs: () => number) => {
  const { state, routes } = createImageState(nowMs)
  let fal: Promise<Fal> | undefined
  // Loaded with the first request, so that the start of the world does not wait for it.
  const loadFal = () => {
    fal ??= import('./fal.ts').then(({ createFal }) => createFal(state))
    return fal
  }
  const start = async ({ preferredPort, injector }: Listen): Promise<ListeningServer> => {
    const server: ListeningServer = await listen(
      (incoming, answer) => {
        const handle = async () => {
          const body = await readBody(incoming)
          const isFile = incoming.url?.startsWith('/files/') ?? false
          const injection = await injectFailure(
            injector.next([isFile ? 'file' : 'generate']),
            incoming,
            answer,
          )
          if (injection.type === 'answered') return
          const origin = `http://127.0.0.1:${server.port}`
          if (injection.dropReply) return void incoming.socket.destroy()
          await (await loadFal())({ incoming, answer, body, origin })
        }
        handle().catch(() => incoming.socket.destroy())
      },
      { preferredPort },
    )
    return server
  }
  return { start, routes }
}
