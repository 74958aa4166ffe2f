import type { Answer } from './answer-dial.ts'
import { injectNextFailure } from './fault-injection.ts'
import type { FailureInjector } from './injected-failures.ts'
import { type ListeningServer, listen } from './listen.ts'

type Options = {
  preferredPort: number
  injector: FailureInjector
  /** Answers a GET request; the code behind it is loaded with the first one. */
  respond: (url: URL) => Promise<Answer>
}

/** A service that answers questions about tokens with JSON. */
export const startAnswerServer = ({ preferredPort, injector, respond }: Options): Promise<ListeningServer> =>
  listen(
    (incoming, answer) => {
      const handle = async () => {
        const injection = await injectNextFailure(injector, incoming, answer, Buffer.alloc(0))
        if (injection.type === 'answered') return
        const { status, body } =
          incoming.method === 'GET'
            ? await respond(new URL(incoming.url ?? '/', 'http://world'))
            : { status: 405, body: { error: 'method not allowed' } }
        if (injection.dropReply) return incoming.socket.destroy()
        const text = JSON.stringify(body)
        answer.writeHead(status, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        })
        answer.end(text)
      }
      handle().catch(() => incoming.socket.destroy())
    },
    { preferredPort },
  )
