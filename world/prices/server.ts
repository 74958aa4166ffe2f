import { injectNextFailure } from '#world/fault-injection.ts'
import type { FailureInjector } from '#world/injected-failures.ts'
import { type ListeningServer, listen } from '#world/listen.ts'
import { createRouter, HttpError } from '#world/router.ts'
import type { PriceBook } from './book.ts'
import type { priceResponder } from './price-responder.ts'

const keysMax = 500

type Options = {
  preferredPort: number
  book: PriceBook
  injector: FailureInjector
  respondPrices: ReturnType<typeof priceResponder>
}

export const startPrices = ({
  preferredPort,
  book,
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
    {
      method: 'GET',
      path: /^\/v2\/prices\/([A-Z0-9]+)-USD\/spot$/,
      run: (_request, [base = '']) => {
        const quote = book.quote(base)
        if (!quote) throw new HttpError(404, 'Invalid base currency.')
        return { data: { amount: quote.spotUsd, base, currency: 'USD' } }
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
