import { type QuoteBudget, unlimitedQuotes } from '#kernel/async/quote-rate-shares.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { RouteRequest, StatusRequest, SwapProvider } from '#kernel/money/swap-provider.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { providerName } from './answer-reader.ts'
import { currencyOf, nativeName, routeOf } from './quote.ts'
import { createLifiRequests } from './requests.ts'
import { statusOf } from './status.ts'

/** LI.FI: swaps on one EVM chain, and transfers between EVM chains over Across. */

type LifiOptions = {
  url: string
  net: Net
  chains: readonly Pick<Chain, 'id' | 'family' | 'native'>[]
  clock: Clock
  apiKey?: string | undefined
  quotes?: QuoteBudget
}

const integrator = 'portico'
const slippageDigits = 4

const noRoute = (why: string): Fault =>
  new Fault('no_route', `There is no route for this swap: ${why}`, { extras: { upstream: providerName } })

/** Converts hundredths of a percent to the fraction that the API takes. */
const slippageText = (bps: number): string => {
  const digits = String(bps).padStart(slippageDigits + 1, '0')
  return `${digits.slice(0, -slippageDigits)}.${digits.slice(-slippageDigits)}`
}

export function createLifi({
  url,
  net,
  chains,
  clock,
  apiKey,
  quotes = unlimitedQuotes,
}: LifiOptions): SwapProvider {
  const rows = new Map(chains.filter(({ family }) => family === 'evm').map((row) => [row.id, row]))
  const requests = createLifiRequests({ url, net, apiKey })

  function rowOf(chainId: string, field: string) {
    const row = rows.get(chainId)
    if (!row)
      throw invalid(
        field,
        'unsupported_chain',
        'Swaps do not serve this chain: `chains_list` shows what each chain serves',
      )
    return row
  }

  const queryOf = ({ origin, destination, ...request }: RouteRequest): Record<string, string> => {
    const from = rowOf(origin.chainId, 'chain_id_in')
    const to = rowOf(destination.chainId, 'chain_id_out')
    const toToken = currencyOf(to, destination.token)
    // Native coins as output are refused: their arrival has no event by which the amount could be measured, and Across
    // pays wrapped coins to an account with code.
    if (toToken === nativeName) throw noRoute('native coins do not arrive over it')
    return {
      fromChain: origin.chainId,
      toChain: destination.chainId,
      fromToken: currencyOf(from, origin.token),
      toToken,
      fromAddress: request.user,
      toAddress: request.recipient,
      fromAmount: String(request.amountInUnits),
      slippage: slippageText(request.slippageBps),
      integrator,
      ...(origin.chainId !== destination.chainId && { allowBridges: 'across' }),
    }
  }

  return {
    name: providerName,
    async quote(request, signal) {
      const answer = await requests.get('/v1/quote', queryOf(request), {
        signal,
        beforeAttempt: () => quotes.take(request),
      })
      return routeOf(answer, { request, rows, now: clock.now() })
    },
    async status(request: StatusRequest, signal) {
      const query = {
        txHash: request.originTxHash ?? request.providerRequestId,
        fromChain: request.originChainId,
        toChain: request.destinationChainId,
      }
      return statusOf(await requests.get('/v1/status', query, { signal }), request, rows)
    },
    // LI.FI returns the status of a deposit by its transaction hash, which therefore serves as the request id.
    requestOf: async (depositTxHash) => depositTxHash,
  }
}
