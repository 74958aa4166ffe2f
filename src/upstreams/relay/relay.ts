import { type QuoteBudget, unlimitedQuotes } from '#kernel/async/quote-rate-shares.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { RouteRequest, StatusRequest, SwapProvider } from '#kernel/money/swap-provider.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { providerName } from './answer-reader.ts'
import { foreignNames } from './chain-and-currency-names.ts'
import { routeOf } from './quote.ts'
import { createRelayRequests } from './requests.ts'
import { requestIdIn, statusOf, withReasons } from './status.ts'

/** Relay: swaps on one chain, and deposits that its solver fills on another. */

type RelayOptions = {
  url: string
  net: Net
  chains: readonly Pick<Chain, 'id' | 'family' | 'native'>[]
  clock: Clock
  /** Relay states the reasons of refunds only in replies to requests with an API key. */
  apiKey?: string | undefined
  quotes?: QuoteBudget
}

/** The length of the shorter route that is requested after a route was too large for one transaction on Solana. */
const shortRoute = 2

export function createRelay({
  url,
  net,
  chains,
  clock,
  apiKey,
  quotes = unlimitedQuotes,
}: RelayOptions): SwapProvider {
  const names = foreignNames(chains)
  const requests = createRelayRequests({ url, net, apiKey })

  const bodyOf = ({ origin, destination, ...request }: RouteRequest) => ({
    user: request.user,
    recipient: request.recipient,
    // Without `refundTo`, Relay refunds nothing automatically.
    refundTo: request.user,
    originChainId: foreignIdOf(origin.chainId, 'chain_id_in'),
    originCurrency: names.currency(origin),
    destinationChainId: foreignIdOf(destination.chainId, 'chain_id_out'),
    destinationCurrency: names.currency(destination),
    amount: String(request.amountInUnits),
    tradeType: 'EXACT_INPUT',
    // The deposit is made through the contract, because no rule of custody could bind a plain transfer to its order.
    explicitDeposit: true,
    slippageTolerance: String(request.slippageBps),
    ttl: request.ttlSeconds,
    ...(request.feePayer !== undefined && { depositFeePayer: request.feePayer }),
  })

  function foreignIdOf(chainId: string, field: string): number {
    const id = names.chainId(chainId)
    if (id === undefined)
      throw invalid(
        field,
        'unsupported_chain',
        'Swaps do not serve this chain: `chains_list` shows what each chain serves',
      )
    return id
  }

  return {
    name: providerName,
    async quote(request, signal) {
      const body = bodyOf(request)
      const beforeAttempt = () => quotes.take(request)
      const post = (sent: object) => requests.post('/quote/v2', sent, { signal, beforeAttempt })
      const answer = await post(body).catch((fault: unknown) => {
        const isTooLarge = fault instanceof Fault && fault.extras.upstream_code === 'SOLANA_TX_TOO_LARGE'
        if (!isTooLarge) throw fault
        return post({ ...body, maxRouteLength: shortRoute })
      })
      return routeOf(answer, { request, names, now: clock.now() })
    },
    async status(request: StatusRequest, signal) {
      const { providerRequestId: requestId } = request
      const answer = await requests.get('/intents/status/v3', { requestId }, signal)
      const status = statusOf(answer, { request, names })
      const needsReason = status.state === 'refunded' || status.state === 'failed'
      if (!needsReason || apiKey === undefined) return status
      const list = await requests.get('/requests/v3', { id: requestId }, signal).catch((fault: unknown) => {
        if (fault instanceof Fault) return undefined
        throw fault
      })
      // The status ends a swap even if Relay does not say why.
      return withReasons(status, list, { request, names })
    },
    async requestOf(depositTxHash) {
      if (apiKey === undefined) return undefined
      const list = await requests.get('/requests/v3', { depositTxHash })
      return requestIdIn(list)
    },
  }
}
