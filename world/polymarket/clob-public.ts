import { minimumSize } from './catalog.ts'
import { bestPrice, bookView, lastPriceOf, midpointText, pageOf, spreadText } from './clob-views.ts'
import { priceText } from './decimal.ts'
import { HttpError, integerOf, ok, type Reply, type Request, type Route, route } from './http.ts'
import { type Market, marketByCondition, markets, type OutcomeIndex, outcomeByToken } from './markets.ts'
import type { RealismControl } from './realism.ts'
import type { Side } from './state.ts'
import { feeOf, stateOf, type Venue } from './venue.ts'

type Deps = { venue: Venue; realism: RealismControl }
type Listed = { market: Market; outcome: OutcomeIndex }

const tokenOf = ({ query }: Request, parameters: readonly string[] = []): Listed => {
  const token = parameters[0] ?? query.get('token_id') ?? ''
  if (!/^[0-9]{1,78}$/.test(token)) throw new HttpError(400, 'Invalid token id')
  const found = outcomeByToken(token)
  if (!found) throw new HttpError(404, 'No orderbook exists for the requested token id')
  return found
}

const openBook = (venue: Venue, listed: Listed): Listed => {
  if (stateOf(venue, listed.market.conditionId).isClosed)
    throw new HttpError(404, 'No orderbook exists for the requested token id')
  return listed
}

const tokensMax = 500

const tokensOfBody = ({ body }: Request): (Listed & { side: Side | undefined })[] => {
  if (!Array.isArray(body) || body.length === 0) throw new HttpError(400, 'Invalid payload')
  if (body.length > tokensMax) throw new HttpError(400, 'Payload exceeds the limit')
  return body.flatMap(({ token_id: token, side }: { token_id?: unknown; side?: Side }) => {
    const found = outcomeByToken(String(token))
    return found ? [{ ...found, side }] : []
  })
}

const sideOf = (value: string | null): Side => {
  if (value === 'BUY' || value === 'SELL') return value
  throw new HttpError(400, 'Invalid side')
}

/** What a taker of this side would trade against, as upstream names it: BUY is the best bid. */
const priceOf = (venue: Venue, { market, outcome }: Listed, side: Side): string | undefined => {
  const best = bestPrice(venue, market, outcome, { buy: side === 'BUY' })
  return best === undefined ? undefined : priceText(best)
}

const found = <T>(value: T | undefined): T => {
  if (value === undefined) throw new HttpError(404, 'No orderbook exists for the requested token id')
  return value
}

const byToken = (list: readonly Listed[], value: (listed: Listed) => unknown) =>
  Object.fromEntries(
    list.flatMap((listed) => {
      const each = value(listed)
      return each === undefined ? [] : [[listed.market.tokens[listed.outcome], each]]
    }),
  )

const lastTrade = (venue: Venue, { market, outcome }: Listed) => {
  const { lastSide } = stateOf(venue, market.conditionId)
  const mirrored: Side = lastSide === 'BUY' ? 'SELL' : 'BUY'
  return { price: priceText(lastPriceOf(venue, market, outcome)), side: outcome === 0 ? lastSide : mirrored }
}

const bookRoutes = ({ venue }: Deps): Route[] => [
  route('GET /book', (request) => {
    const { market, outcome } = openBook(venue, tokenOf(request))
    return ok(bookView(venue, market, outcome))
  }),
  route('POST /books', (request) =>
    ok(tokensOfBody(request).map(({ market, outcome }) => bookView(venue, market, outcome))),
  ),
  route('GET /midpoint', (request) => {
    const { market, outcome } = tokenOf(request)
    return ok({ mid: found(midpointText(venue, market, outcome)) })
  }),
  route('POST /midpoints', (request) =>
    ok(byToken(tokensOfBody(request), ({ market, outcome }) => midpointText(venue, market, outcome))),
  ),
  route('GET /price', (request) =>
    ok({ price: found(priceOf(venue, tokenOf(request), sideOf(request.query.get('side')))) }),
  ),
  route('POST /prices', (request) => {
    const list = tokensOfBody(request)
    return ok(
      byToken(list, (listed) => {
        const sides = list.filter(
          ({ market, outcome }) => market === listed.market && outcome === listed.outcome,
        )
        const wanted = new Set(sides.flatMap(({ side }) => side ?? (['BUY', 'SELL'] as const)))
        return Object.fromEntries([...wanted].map((side) => [side, priceOf(venue, listed, side) ?? '0']))
      }),
    )
  }),
  route('GET /spread', (request) => {
    const { market, outcome } = tokenOf(request)
    return ok({ spread: found(spreadText(venue, market, outcome)) })
  }),
  route('POST /spreads', (request) =>
    ok(byToken(tokensOfBody(request), ({ market, outcome }) => spreadText(venue, market, outcome))),
  ),
  route('GET /last-trade-price', (request) => ok(lastTrade(venue, tokenOf(request)))),
  route('POST /last-trades-prices', (request) =>
    ok(
      tokensOfBody(request).map((listed) => ({
        token_id: listed.market.tokens[listed.outcome],
        ...lastTrade(venue, listed),
      })),
    ),
  ),
]

const hourSeconds = 3_600
const daySeconds = 24 * hourSeconds
const intervals: Record<string, number> = {
  '1h': hourSeconds,
  '6h': 6 * hourSeconds,
  '1d': daySeconds,
  '1w': 7 * daySeconds,
  '1m': 30 * daySeconds,
  max: Number.POSITIVE_INFINITY,
  all: Number.POSITIVE_INFINITY,
}
const spanMax = 15 * daySeconds

const windowOf = ({ query }: Request, nowSeconds: number): { from: number; to: number } => {
  const interval = query.get('interval')
  if (interval !== null) {
    const seconds = intervals[interval]
    if (seconds === undefined) throw new HttpError(400, 'invalid filters: invalid interval')
    return { from: nowSeconds - seconds, to: nowSeconds }
  }
  const [from, to] = [Number(query.get('startTs') ?? Number.NaN), Number(query.get('endTs') ?? nowSeconds)]
  if (!Number.isFinite(from) || !Number.isFinite(to))
    throw new HttpError(400, "invalid filters: 'startTs' or 'interval' is required")
  if (to - from > spanMax)
    throw new HttpError(400, "invalid filters: 'startTs' and 'endTs' interval is too long")
  return { from, to }
}

/** One point per step: the last price before its end. */
const history = (venue: Venue, request: Request): Reply => {
  const listed = outcomeByToken(request.query.get('market') ?? '')
  if (!listed) return ok({ history: [] })
  const { market, outcome } = listed
  const nowSeconds = Math.floor(venue.state.nowMs / 1_000)
  const { from, to } = windowOf(request, nowSeconds)
  const step = integerOf(request.query, 'fidelity', { fallback: 1, min: 1, max: 43_200 }) * 60
  const points = new Map<number, { t: number; p: number }>()
  const state = stateOf(venue, market.conditionId)
  for (const [at, price] of [...state.samples, [nowSeconds, state.lastPrice] as const]) {
    if (at < from || at > to) continue
    const own = outcome === 0 ? price : 10_000 - price
    points.set(Math.floor(at / step), { t: at, p: own / 10_000 })
  }
  return ok({ history: [...points.values()] })
}

const feeDetails = (venue: Venue, { conditionId }: Market) => {
  const fee = feeOf(venue, conditionId)
  return { r: fee?.rate ?? 0, e: fee?.exponent ?? 0, to: true }
}

/** The short form of a market. */
const clobMarket = (venue: Venue, market: Market) => {
  const state = stateOf(venue, market.conditionId)
  return {
    c: market.conditionId,
    gst: null,
    r: null,
    t: market.tokens.map((token, at) => ({ t: token, o: market.outcomes[at] })),
    mos: minimumSize,
    mts: state.tick / 10_000,
    mbf: 0,
    tbf: 0,
    rfqe: false,
    itode: market.secondsDelay > 0,
    ibce: false,
    nr: market.chain.isNegRisk,
    ao: !state.isClosed,
    sd: market.secondsDelay,
    cbos: false,
    aot: new Date(venue.state.genesisMs).toISOString(),
    fd: feeDetails(venue, market),
    oas: 0,
  }
}

const tokensView = (venue: Venue, market: Market) => {
  const { payout } = stateOf(venue, market.conditionId)
  return market.tokens.map((token, at) => ({
    token_id: token,
    outcome: market.outcomes[at],
    price: lastPriceOf(venue, market, at as OutcomeIndex) / 10_000,
    winner: payout !== null && (at === 0 ? payout === 10_000 : payout === 0),
  }))
}

const simplified = (venue: Venue, market: Market) => {
  const { isClosed } = stateOf(venue, market.conditionId)
  return {
    condition_id: market.conditionId,
    rewards: { rates: null, min_size: 0, max_spread: 0 },
    tokens: tokensView(venue, market),
    active: true,
    closed: isClosed,
    archived: false,
    accepting_orders: !isClosed,
  }
}

const yearMs = 365 * 86_400_000

const wholeMarket = (venue: Venue, market: Market) => {
  const state = stateOf(venue, market.conditionId)
  return {
    ...simplified(venue, market),
    enable_order_book: true,
    accepting_order_timestamp: new Date(venue.state.genesisMs).toISOString(),
    minimum_order_size: minimumSize,
    minimum_tick_size: state.tick / 10_000,
    question_id: market.chain.questionId,
    question: market.question,
    description: market.question,
    market_slug: market.slug,
    end_date_iso: new Date(venue.state.genesisMs + yearMs).toISOString(),
    game_start_time: null,
    seconds_delay: market.secondsDelay,
    fpmm: '',
    maker_base_fee: 0,
    taker_base_fee: 0,
    notifications_enabled: true,
    neg_risk: market.chain.isNegRisk,
    neg_risk_market_id: market.chainEvent?.eventId ?? '',
    neg_risk_request_id: market.chain.isNegRisk ? market.chain.questionId : '',
    icon: '',
    image: '',
    is_50_50_outcome: state.payout === 5_000,
    tags: market.event.tags.map(({ label }) => label),
  }
}

const requireMarket = (conditionId: string | undefined): Market => {
  const market = marketByCondition(conditionId ?? '')
  if (!market) throw new HttpError(404, 'market not found')
  return market
}

const marketPage = 1_000

const marketRoutes = ({ venue, realism }: Deps): Route[] => {
  const page = (request: Request, view: (venue: Venue, market: Market) => unknown) =>
    ok(
      pageOf(
        markets.map((market) => view(venue, market)),
        request.query.get('next_cursor'),
        marketPage,
      ),
    )
  const tickSize = (request: Request, parameters: readonly string[]) =>
    ok({ minimum_tick_size: stateOf(venue, tokenOf(request, parameters).market.conditionId).tick / 10_000 })
  const negRisk = (request: Request, parameters: readonly string[]) => {
    const { isNegRisk } = tokenOf(request, parameters).market.chain
    const { negRiskContradictionRate } = realism.current()
    const isWrong = realism.isHit('negRiskContradictionRate', negRiskContradictionRate)
    return ok({ neg_risk: isWrong ? !isNegRisk : isNegRisk })
  }
  const feeRate = (request: Request, parameters: readonly string[]) => {
    tokenOf(request, parameters)
    return ok({ base_fee: 0 })
  }
  return [
    ...Object.entries({ 'tick-size': tickSize, 'neg-risk': negRisk, 'fee-rate': feeRate }).flatMap(
      ([name, answer]) => [route(`GET /${name}`, answer), route(`GET /${name}/:token`, answer)],
    ),
    route('GET /fees/builder-fees/:code', (_request, [code = '']) => {
      const { makerBps = 0, takerBps = 0 } = venue.state.builderFees.get(code.toLowerCase()) ?? {}
      return ok({ builder_maker_fee_rate_bps: makerBps, builder_taker_fee_rate_bps: takerBps })
    }),
    route('GET /markets-by-token/:token', (request, parameters) => {
      const { market } = tokenOf(request, parameters)
      const [primary, secondary] = market.tokens
      return ok({
        condition_id: market.conditionId,
        primary_token_id: primary,
        secondary_token_id: secondary,
      })
    }),
    route('GET /clob-markets/:condition', (_request, [id]) => ok(clobMarket(venue, requireMarket(id)))),
    ...['', 'sampling-'].flatMap((kind) => [
      route(`GET /${kind}markets`, (request) => page(request, wholeMarket)),
      route(`GET /${kind}simplified-markets`, (request) => page(request, simplified)),
    ]),
    route('GET /markets/:condition', (_request, [id]) => ok(wholeMarket(venue, requireMarket(id)))),
    route('GET /prices-history', (request) => history(venue, request)),
  ]
}

export const publicRoutes = (deps: Deps): Route[] => [
  route('GET /', () => ok('OK')),
  route('GET /ok', () => ok('OK')),
  route('GET /time', () => ok(Math.floor(deps.venue.state.nowMs / 1_000))),
  route('GET /version', () => ok({ version: 2 })),
  ...bookRoutes(deps),
  ...marketRoutes(deps),
]
