import { multicall3 } from '#world/evm/chains.ts'
import { type Currency, chainById, currencyAt, type SolverChain, solverChains } from './chains.ts'
import type { Connections } from './connections.ts'
import { QuoteError } from './errors.ts'
import { formatUsd } from './money.ts'
import type { Prices } from './prices.ts'
import type { createQuotes, QuoteRules } from './quote.ts'
import type { RealismControl } from './realism.ts'
import type { SolverRequest } from './request.ts'
import { requestView, statusView } from './request-view.ts'
import type { Store } from './store.ts'

export type ApiRequest = {
  method: string
  path: string
  query: URLSearchParams
  fields: Record<string, unknown>
  apiKey: string | undefined
}
export type ApiReply = { status: number; body: unknown }
export type Api = (request: ApiRequest) => Promise<ApiReply>

export type ApiDeps = {
  store: Store
  connections: Connections
  prices: Prices
  realism: RealismControl
  rules: QuoteRules
  quote: ReturnType<typeof createQuotes>
  /** Looks at the chains at once. */
  wake: () => void
  notifySwap: (requestId: string, txHash: string) => void
  nowMs: () => number
}

const requestsMax = 50
/** Requests that one call searches. */
const searchedMax = 5_000
const currenciesDefault = 20

const chainView = (chain: SolverChain, { connections, rules }: ApiDeps) => {
  const short = ({ address, symbol, name, decimals }: Currency) => ({
    id: symbol.toLowerCase(),
    symbol,
    name,
    address,
    decimals,
  })
  const url = connections.publicUrl(chain.id)
  const isEvm = chain.vm === 'evm'
  return {
    id: chain.id,
    name: chain.name,
    displayName: chain.displayName,
    httpRpcUrl: url,
    wsRpcUrl: url.replace('http', 'ws'),
    explorerUrl: url,
    explorerName: 'local',
    depositEnabled: true,
    tokenSupport: 'Limited' as const,
    disabled: rules.disabledChains.has(chain.id),
    partialDisableLimit: 0,
    blockProductionLagging: false,
    currency: { ...short(chain.native), supportsBridging: true },
    withdrawalFee: 0,
    depositFee: 0,
    surgeEnabled: false,
    featuredTokens: chain.tokens.map((each) => ({ ...short(each), supportsBridging: true })),
    erc20Currencies: chain.tokens.map((each) => ({ ...short(each), supportsBridging: true })),
    solverCurrencies: [chain.native, ...chain.tokens].map(short),
    iconUrl: null,
    contracts: isEvm ? { multicall3 } : {},
    vmType: chain.vm,
    baseChainId: isEvm && chain.id !== 1 ? 1 : null,
    statusMessage: null,
    solverAddresses: [chain.wallet],
    tags: [],
    protocol: { v2: { chainId: chain.name, depository: chain.depository } },
  }
}

const currencyView = (chain: SolverChain, currency: Currency) => ({ ...currency, vmType: chain.vm })

const listCurrencies = (fields: Record<string, unknown>) => {
  const { chainIds, term, address, currencyId, tokens, limit } = fields
  const text = typeof term === 'string' ? term.toLowerCase() : undefined
  const isWanted = (chain: SolverChain, currency: Currency): boolean => {
    if (Array.isArray(chainIds) && !chainIds.map(Number).includes(chain.id)) return false
    if (typeof address === 'string' && currencyAt(chain, address) !== currency) return false
    if (typeof currencyId === 'string' && currency.symbol.toLowerCase() !== currencyId.toLowerCase())
      return false
    if (
      Array.isArray(tokens) &&
      !tokens
        .map((each) => String(each).toLowerCase())
        .includes(`${chain.id}:${currency.address.toLowerCase()}`)
    )
      return false
    const { symbol, name } = currency
    return (
      text === undefined || [symbol, name, currency.address].some((each) => each.toLowerCase().includes(text))
    )
  }
  return solverChains
    .flatMap((chain) =>
      [chain.native, ...chain.tokens]
        .filter((currency) => isWanted(chain, currency))
        .map((currency) => currencyView(chain, currency)),
    )
    .slice(0, typeof limit === 'number' ? limit : currenciesDefault)
}

const isSelected = (query: URLSearchParams) => {
  const fieldOf: Record<string, (request: SolverRequest) => readonly unknown[]> = {
    id: ({ id }) => [id],
    orderId: ({ orderId }) => [orderId],
    user: ({ user, deposit }) => [user, deposit?.from],
    recipient: ({ recipient }) => [recipient],
    status: ({ status }) => [status],
    originChainId: ({ originChainId }) => [String(originChainId)],
    destinationChainId: ({ destinationChainId }) => [String(destinationChainId)],
    depositTxHash: ({ inTxs }) => inTxs.map(({ hash }) => hash),
    fillTxHash: ({ outTxs, status }) => (status === 'refund' ? [] : outTxs.map(({ hash }) => hash)),
    refundTxHash: ({ outTxs, status }) => (status === 'refund' ? outTxs.map(({ hash }) => hash) : []),
    failReason: ({ failReason }) => [failReason],
    refundFailReason: ({ refundFailReason }) => [refundFailReason],
  }
  const wanted = Object.entries(fieldOf).filter(([name]) => query.has(name))
  const same = (value: unknown, text: string) => String(value).toLowerCase() === text.toLowerCase()
  return (request: SolverRequest): boolean =>
    wanted.every(([name, read]) => read(request).some((value) => same(value, query.get(name) ?? '')))
}

const listRequests = async (deps: ApiDeps, query: URLSearchParams) => {
  const { store, prices, realism, nowMs } = deps
  const id = query.get('id')
  const parent = id === null ? undefined : store.find(id.toLowerCase())
  const searched = id === null ? store.newest(searchedMax) : parent ? [parent] : []
  const children = parent && query.get('includeChildRequests') === 'true' ? store.children(parent.id) : []
  const found = [...searched.filter(isSelected(query)), ...children]
  const offset = Number(query.get('continuation') ?? 0) || 0
  const limit = Math.min(Number(query.get('limit') ?? 20) || 20, requestsMax)
  const page = found.slice(offset, offset + limit)
  const requests = await Promise.all(
    page.map((request) => requestView(request, { prices, realism, nowMs: nowMs() })),
  )
  return {
    requests,
    ...(found.length > offset + limit && { continuation: String(offset + limit) }),
    ...(query.get('includeTotal') === 'true' && { total: found.length }),
  }
}

const reply = (body: unknown, status = 200): ApiReply => ({ status, body })

type Handler = (request: ApiRequest) => Promise<ApiReply> | ApiReply

const handlers = (deps: ApiDeps): Record<string, Handler> => {
  const { store, prices, realism, quote, wake, notifySwap, nowMs } = deps
  const status: Handler = ({ query }) => {
    const request = store.find((query.get('requestId') ?? '').toLowerCase())
    return reply(request ? statusView(request, realism, nowMs()) : { status: 'unknown' })
  }
  const price = async ({ query }: ApiRequest): Promise<bigint> => {
    const chain = chainById(Number(query.get('chainId')))
    const currency = chain && currencyAt(chain, query.get('address') ?? '')
    const usd = currency && (await prices.priceOf(currency))
    if (usd === undefined) throw new QuoteError(400, 'UNSUPPORTED_CURRENCY', 'Unable to fetch price')
    return usd
  }
  return {
    'POST /quote/v2': async ({ fields }) => reply(await quote(fields)),
    'GET /intents/status/v3': status,
    'GET /requests/v3': async ({ query, apiKey }) =>
      apiKey === undefined
        ? reply({ message: 'An API key is required', errorCode: 'UNAUTHORIZED' }, 401)
        : reply(await listRequests(deps, query)),
    'GET /chains': () => reply({ chains: solverChains.map((chain) => chainView(chain, deps)) }),
    'POST /currencies/v2': ({ fields }) => reply(listCurrencies(fields)),
    'GET /currencies/token/price': async (request) =>
      reply({ price: Number(formatUsd(await price(request))) }),
    'POST /transactions/index': ({ fields }) => {
      if (typeof fields.requestId === 'string') notifySwap(fields.requestId, String(fields.txHash))
      wake()
      return reply({ message: 'Success' })
    },
    'POST /transactions/single': ({ fields }) => {
      const { txHash } = JSON.parse(String(fields.tx)) as { txHash?: unknown }
      notifySwap(String(fields.requestId), String(txHash))
      wake()
      return reply({ message: 'Success' })
    },
  }
}

/** The public interface, in Relay's form. */
export const createApi = (deps: ApiDeps): Api => {
  const table = handlers(deps)
  return async (request) => {
    const handler = table[`${request.method} ${request.path}`]
    if (!handler)
      return reply({ message: `Route ${request.method}:${request.path} not found`, statusCode: 404 }, 404)
    try {
      return await handler(request)
    } catch (error) {
      if (error instanceof QuoteError)
        return reply({ message: error.message, errorCode: error.errorCode }, error.status)
      throw error
    }
  }
}
