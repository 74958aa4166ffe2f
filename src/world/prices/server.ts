import { injectNextFailure } from '#world/fault-injection.ts'
import type { FailureInjector } from '#world/injected-failures.ts'
import { type ListeningServer, listen } from '#world/listen.ts'
import { createRouter, HttpError } from '#world/router.ts'
import type { priceResponder } from './price-responder.ts'

const keysMax = 500

type Options = {
  preferredPort: number
  injector: FailureInjector
  respondPrices: ReturnType<typeof priceResponder>
}

export const startPrices = ({
  preferredPort,
  injector,
  respondPrices,
}: Options): Promise<ListeningServer> => {
  const run = createRouter([
    {
      method: 'GET',
      path: /^\/prices\/current\/([^/]+)$/,
      run: (_request, [list = '']) => {
        const keys = decodeURIComponent(list).split(',')
        if (keys.length > keysMax) throw new HttpError(400, `At most ${keysMax} coins fit into one request.`)
        return respondPrices(keys)
      },
    },
  ])
  return listen(
    (incoming, answer) => {
      injectNextFailure(injector, incoming, answer, Buffer.alloc(0)).then(
        (injection) => {
          if (injection.type === 'answered') return
          if (injection.dropReply) incoming.socket.destroy()
          else run(incoming, answer)
        },
        () => incoming.socket.destroy(),
      )
    },
    { preferredPort },
  )
}
