import { createServer, type IncomingMessage, type Server } from 'node:http'
import { isForeignOrigin } from '#world/origin-check.ts'
import type { InjectedFailure, InjectedFailures } from '#world/venue-core/injected-failures.ts'
import { RequestError } from '#world/venue-core/request-error.ts'
import { contracts } from './chain/addresses.ts'
import { pauseRampCall } from './chain/calls.ts'
import type { Address, Hex, Reads, Sender, WorldMoney } from './chain/chain-terms.ts'
import { priceText, unitsText } from './decimal.ts'
import { dollars } from './ledger.ts'
import type { Engine } from './machine.ts'
import { type Market, marketByCondition, markets, outcomeByToken } from './markets.ts'
import { type RealismControl, readRealism } from './realism.ts'
import type { Outcome, Resolver } from './resolution.ts'
import type { VenueMode } from './state.ts'
import type { Stream } from './stream.ts'
import { isOpenTrade } from './trades.ts'
import { stateOf } from './venue.ts'
import type { WorkLoop } from './work-loop.ts'

export type ControlDeps = {
  engine: Engine
  faults: InjectedFailures
  realism: RealismControl
  stream: Stream
  resolver: Resolver
  settlement: WorkLoop
  relay: WorkLoop | undefined
  chain: { sender: Sender; reads: Reads; money: WorldMoney } | undefined
}

type Body = Record<string, unknown>
type Route = (deps: ControlDeps, body: Body, query: URLSearchParams) => unknown

const addressOf = (value: unknown, name: string): Address => {
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value)) return value as Address
  throw new RequestError(`${name} must be an address`)
}

const numberOf = (value: unknown, name: string): number => {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new RequestError(`${name} must be a number`)
}

const dollarUnits = (value: unknown, name = 'amount'): bigint => {
  const match = /^([0-9]{1,12})(?:\.([0-9]{1,6}))?$/.exec(String(value))
  if (!match) throw new RequestError(`${name} must be a decimal with at most six places`)
  return BigInt(`${match[1]}${(match[2] ?? '').padEnd(6, '0')}`)
}

/** By condition, slug or a token. */
const marketIn = ({ market }: Body): Market => {
  const text = String(market)
  const found =
    marketByCondition(text) ?? outcomeByToken(text)?.market ?? markets.find(({ slug }) => slug === text)
  if (!found) throw new RequestError('market must be a condition id, a slug or a token')
  return found
}

const ticksOf = (value: unknown, name: string): number => {
  const ticks = Math.round(numberOf(value, name) * 10_000)
  if (ticks > 0 && ticks < 10_000) return ticks
  throw new RequestError(`${name} must be between 0 and 1`)
}

const marketView = ({ engine }: ControlDeps, market: Market) => {
  const state = stateOf(engine.venue, market.conditionId)
  return {
    conditionId: market.conditionId,
    slug: market.slug,
    tokens: market.tokens,
    protocol: market.chain.protocol,
    negRisk: market.chain.isNegRisk,
    tick: priceText(state.tick),
    fair: priceText(state.fair),
    isClosed: state.isClosed,
    isReported: state.isReported,
    payout: state.payout === null ? null : priceText(state.payout),
    secondsDelay: market.secondsDelay,
    fee: market.fee,
  }
}

/** The venue's own record: tests compare everything else with it. */
const effects: Route = ({ engine }, _body, query) => {
  const { state } = engine.venue
  const wallet = query.get('wallet')?.toLowerCase()
  const isOf = (each: string): boolean => wallet === undefined || each === wallet
  return {
    nowMs: state.nowMs,
    sequence: state.sequence,
    mode: state.mode.name,
    openTrades: [...state.trades.values()].filter(isOpenTrade).length,
    orders: [...state.orders.values()]
      .filter(({ user, wallet: own }) => user !== '' && isOf(own))
      .map(({ id, wallet: own, side, conditionId, outcome, price, size, matched, status, type, trades }) => ({
        id,
        wallet: own,
        side,
        conditionId,
        outcome,
        price: priceText(price),
        size: unitsText(size),
        matched: unitsText(matched),
        status,
        type,
        trades,
      })),
    trades: [...state.trades.values()]
      .filter(({ taker, makers }) => [taker, ...makers].some((leg) => isOf(leg.wallet)))
      .map(({ id, key, conditionId, status, hash, attempts, error, taker, makers }) => ({
        id,
        key,
        conditionId,
        status,
        hash,
        attempts,
        error,
        legs: [taker, ...makers].map((leg) => ({
          orderId: leg.orderId,
          wallet: leg.wallet,
          outcome: leg.outcome,
          side: leg.side,
          shares: unitsText(leg.shares),
          cash: unitsText(leg.cash),
          fee: unitsText(leg.fee),
        })),
      })),
  }
}

const modes: readonly VenueMode[] = ['open', 'restarting', 'postOnly', 'cancelOnly', 'disabled']

const modeOf = (value: unknown, name: string): VenueMode => {
  const mode = modes.find((each) => each === value)
  if (!mode) throw new RequestError(`${name} must be one of ${modes.join(', ')}`)
  return mode
}

const forMsOf = (value: unknown, name: string): number =>
  value === undefined ? 0 : Math.max(0, Math.trunc(numberOf(value, name)))

/** As each week: the engine is away for 90 seconds, then takes post-only orders for two minutes. */
const restart = { forMs: 90_000, thenMs: 120_000 }

const timeRoutes: Record<string, Route> = {
  'POST /tick': ({ engine }) => {
    engine.submit({ kind: 'tick' })
    return { nowMs: engine.venue.state.nowMs }
  },
  'POST /advance': ({ engine }, { ms }) => {
    const by = numberOf(ms, 'ms')
    if (by < 0 || by > 400 * 86_400_000) throw new RequestError('ms must be between 0 and 400 days')
    engine.advance(by)
    return { nowMs: engine.venue.state.nowMs }
  },
  'POST /mode': ({ engine }, { mode, forMs, then = 'open', thenMs }) => {
    engine.submit({
      kind: 'mode',
      name: modeOf(mode, 'mode'),
      forMs: forMsOf(forMs, 'forMs'),
      then: modeOf(then, 'then'),
      thenMs: forMsOf(thenMs, 'thenMs'),
    })
    return engine.venue.state.mode
  },
  'POST /restart': ({ engine }, { forMs = restart.forMs, thenMs = restart.thenMs, wipe }) => {
    if (wipe === true) engine.submit({ kind: 'wipe' })
    engine.submit({
      kind: 'mode',
      name: 'restarting',
      forMs: forMsOf(forMs, 'forMs'),
      then: 'postOnly',
      thenMs: forMsOf(thenMs, 'thenMs'),
    })
    return engine.venue.state.mode
  },
  'POST /wipe': ({ engine }) => engine.submit({ kind: 'wipe' }),
}

const marketRoutes: Record<string, Route> = {
  'GET /markets': (deps) => markets.map((market) => marketView(deps, market)),
  'POST /price': (deps, body) => {
    const market = marketIn(body)
    const price = ticksOf(body.price, 'price')
    deps.engine.submit({
      kind: 'price',
      conditionId: market.conditionId,
      price,
      pin: body.pin !== false,
    })
    return marketView(deps, market)
  },
  'POST /tick-size': (deps, body) => {
    const market = marketIn(body)
    const tick = ticksOf(body.tick, 'tick')
    if (![100, 10].includes(tick)) throw new RequestError('tick must be 0.01 or 0.001')
    deps.engine.submit({ kind: 'tickSize', conditionId: market.conditionId, tick })
    return marketView(deps, market)
  },
  'POST /resolve': async (deps, body) => {
    const market = marketIn(body)
    const { outcome, onChain = true } = body
    if (outcome !== 'yes' && outcome !== 'no' && outcome !== 'void')
      throw new RequestError('outcome must be yes, no or void')
    await deps.resolver.resolve(market, outcome as Outcome, { onChain: onChain !== false })
    return marketView(deps, market)
  },
  'POST /report': async (deps, body) => {
    const market = marketIn(body)
    await deps.resolver.report(market)
    return marketView(deps, market)
  },
  'POST /announce': ({ stream }, body) => {
    stream.announce(marketIn(body))
    return {}
  },
  'POST /auto-redeem': async ({ resolver }) => {
    await resolver.autoRedeem()
    return {}
  },
}

const requireChain = ({ chain }: ControlDeps) => {
  if (!chain) throw new RequestError('No Polygon node was given')
  return chain
}

const accountRoutes: Record<string, Route> = {
  'POST /account': ({ engine }, { wallet, closedOnly, banned, phantomUsd }) => {
    const settings = {
      ...(typeof closedOnly === 'boolean' ? { closedOnly } : {}),
      ...(typeof banned === 'boolean' ? { banned } : {}),
      ...(phantomUsd === undefined ? {} : { phantomUsd: numberOf(phantomUsd, 'phantomUsd') }),
    }
    engine.submit({ kind: 'account', wallet: addressOf(wallet, 'wallet'), settings })
    return settings
  },
  'POST /relayer-key': ({ engine }, { address, key }) => {
    const name = typeof key === 'string' && key !== '' ? key : crypto.randomUUID()
    engine.submit({
      kind: 'relayerKey',
      key: name,
      address: addressOf(address, 'address').toLowerCase(),
    })
    return { key: name }
  },
  'POST /builder-key': ({ engine }, { key, secret, passphrase }) => {
    const own = {
      key: String(key ?? crypto.randomUUID()),
      secret: String(secret ?? Buffer.from(crypto.randomUUID()).toString('base64')),
      passphrase: String(passphrase ?? crypto.randomUUID()),
    }
    const rest = { address: '', nonce: '0', createdMs: engine.nowMs() }
    engine.submit({ kind: 'builderKey', key: { ...own, ...rest } })
    return own
  },
  /** pUSD on the chain, or in the venue's own books where there is none. */
  'POST /credit': async ({ engine, chain }, { wallet, amount, token = dollars }) => {
    const owner = addressOf(wallet, 'wallet')
    const units = dollarUnits(amount)
    if (!chain) {
      const asset = String(token)
      engine.submit({ kind: 'credit', wallet: owner, asset, amount: String(units) })
    } else if (token === dollars) await chain.money.mintPusd(owner, units)
    else if (token === 'usdc' || token === 'usdce') await chain.money.mintDollars(token, owner, units)
    else throw new RequestError('token must be pusd, usdc or usdce')
    return {}
  },
  'POST /safe': async (deps, { owner }) => ({
    safe: await requireChain(deps).money.placeSafe(addressOf(owner, 'owner')),
  }),
  'POST /ramp': async (deps, { ramp, asset, state }) => {
    if (ramp !== 'onramp' && ramp !== 'offramp') throw new RequestError('ramp must be onramp or offramp')
    if (asset !== 'usdc' && asset !== 'usdce') throw new RequestError('asset must be usdc or usdce')
    if (state !== 'open' && state !== 'paused') throw new RequestError('state must be open or paused')
    await requireChain(deps).sender.send('admin', pauseRampCall(ramp, contracts[asset], state))
    return {}
  },
  'GET /balances': async (deps, _body, query) => {
    const { reads } = requireChain(deps)
    const wallet = addressOf(query.get('wallet'), 'wallet')
    const tokens = (query.get('tokens') ?? '').split(',').filter(Boolean)
    const [cash, shares] = await Promise.all([reads.dollars(wallet), reads.shares(wallet, tokens.map(BigInt))])
    return {
      pusd: unitsText(cash.pusd),
      usdc: unitsText(cash.usdc),
      usdce: unitsText(cash.usdce),
      shares: Object.fromEntries(tokens.map((token, at) => [token, unitsText(shares[at] ?? 0n)])),
    }
  },
  'GET /backing': async (deps) => {
    const { supply, usdc, usdce, locked } = await requireChain(deps).reads.backing()
    return {
      supply: unitsText(supply),
      locked: unitsText(locked),
      usdc: unitsText(usdc),
      usdce: unitsText(usdce),
      isWhole: supply + locked === usdc + usdce,
    }
  },
  'GET /settled': async (deps, _body, query) => {
    const trade = deps.engine.venue.state.trades.get(query.get('trade') ?? '')
    if (!trade) throw new RequestError('trade must be the id of a trade')
    const exchange = markets.find(({ conditionId }) => conditionId === trade.conditionId)
    if (!exchange) throw new RequestError('The market of this trade is not listed')
    const { exchangeOf } = await import('./chain/orders.ts')
    return {
      isSettled: await requireChain(deps).reads.isSettled(exchangeOf(exchange.chain), trade.key as Hex),
    }
  },
}

const dialRoutes: Record<string, Route> = {
  'GET /realism': ({ realism }) => realism.current(),
  'POST /realism': ({ realism }, body) => {
    realism.set(readRealism(body, realism.current()))
    return realism.current()
  },
  'GET /faults': ({ faults }) => faults.list(),
  'POST /faults': ({ faults }, { seed, ...fault }) => ({
    id: faults.add(fault as InjectedFailure, typeof seed === 'number' ? seed : 1),
  }),
  'DELETE /faults': ({ faults }, { id }) => {
    faults.remove(typeof id === 'number' ? id : undefined)
    return {}
  },
  'POST /ws/drop': ({ stream }) => ({ dropped: stream.drop() }),
  'POST /settle': async ({ settlement }) => {
    await settlement.runOnce()
    return {}
  },
  'POST /relay': async ({ relay }) => {
    await relay?.runOnce()
    return {}
  },
  'GET /usage': () => ({ ...process.cpuUsage(), residentBytes: process.memoryUsage.rss() }),
}

const routes: Record<string, Route> = {
  'GET /effects': effects,
  ...timeRoutes,
  ...marketRoutes,
  ...accountRoutes,
  ...dialRoutes,
}

const readJson = async (request: IncomingMessage): Promise<Body> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const text = Buffer.concat(parts).toString('utf8')
  return text === '' ? {} : JSON.parse(text)
}

const run = async (
  deps: ControlDeps,
  request: IncomingMessage,
): Promise<{ status: number; reply: unknown }> => {
  const url = new URL(request.url ?? '/', 'http://control')
  const route = routes[`${request.method} ${url.pathname}`]
  if (!route) return { status: 404, reply: { error: 'No such control' } }
  try {
    return { status: 200, reply: (await route(deps, await readJson(request), url.searchParams)) ?? {} }
  } catch (error) {
    if (error instanceof Error) return { status: 400, reply: { error: error.message } }
    throw error
  }
}

/** Bound to loopback, and never on the venue's own port. */
export const serveControl = (deps: ControlDeps): Server =>
  createServer((request, response) => {
    if (isForeignOrigin(request)) return void response.writeHead(403).end()
    run(deps, request)
      .then(({ status, reply }) =>
        deps.engine.afterPersist(() => {
          response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
        }),
      )
      .catch((error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
        response.writeHead(500).end()
      })
  })
