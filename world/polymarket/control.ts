import type { Server } from 'node:http'
import {
  type ControlBody as Body,
  type ControlRoute,
  commonControls,
  controlNumber as numberOf,
  serveControl as serveRoutes,
} from '#world/venue-core/control-server.ts'
import type { InjectedFailures } from '#world/venue-core/injected-failures.ts'
import { RequestError } from '#world/venue-core/request-error.ts'
import type { WorkLoop } from '#world/venue-core/work-loop.ts'
import { contracts } from './chain/addresses.ts'
import { pauseRampCall } from './chain/calls.ts'
import type { Address, Reads, Sender, WorldMoney } from './chain/chain-terms.ts'
import { priceText, unitsText } from './decimal.ts'
import { pick } from './http.ts'
import { dollars } from './ledger.ts'
import type { Engine } from './machine.ts'
import { type Market, marketByCondition, markets, outcomeByToken } from './markets.ts'
import { type RealismControl, readRealism } from './realism.ts'
import type { Outcome, Resolver } from './resolution.ts'
import type { VenueMode } from './state.ts'
import type { Stream } from './stream.ts'
import { isFeeTooHigh, isOpenTrade } from './trades.ts'
import { feeOf, stateOf } from './venue.ts'

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

type Route = ControlRoute<ControlDeps>

const addressOf = (value: unknown, name: string): Address => {
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value)) return value as Address
  throw new RequestError(`${name} must be an address`)
}

const dollarUnits = (value: unknown, name = 'amount'): bigint => {
  const match = /^([0-9]{1,12})(?:\.([0-9]{1,6}))?$/.exec(String(value))
  if (!match) throw new RequestError(`${name} must be a decimal with at most six places`)
  return BigInt(`${match[1]}${(match[2] ?? '').padEnd(6, '0')}`)
}

/** The market that a condition, a slug or a token names. */
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

const feePart = (value: unknown, name: string, max: number): number => {
  const part = numberOf(value, name)
  if (part < 0 || part > max) throw new RequestError(`${name} must be between 0 and ${max}`)
  return part
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
    fee: feeOf(engine.venue, market.conditionId),
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
      .map((order) => ({
        ...pick(order, ['id', 'wallet', 'side', 'conditionId', 'outcome', 'status', 'type', 'trades']),
        price: priceText(order.price),
        size: unitsText(order.size),
        matched: unitsText(order.matched),
      })),
    trades: [...state.trades.values()]
      .filter(({ taker, makers }) => [taker, ...makers].some((leg) => isOf(leg.wallet)))
      .map((trade) => ({
        ...pick(trade, ['id', 'key', 'conditionId', 'status', 'hash', 'attempts', 'error', 'matchMs']),
        legs: [trade.taker, ...trade.makers].map((leg) => ({
          ...pick(leg, ['orderId', 'wallet', 'outcome', 'side']),
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
const restart = { forMs: 90_000, nextMs: 120_000 }

const timeRoutes: Record<string, Route> = {
  'POST /advance': ({ engine }, { ms }) => {
    const by = numberOf(ms, 'ms')
    if (by < 0 || by > 400 * 86_400_000) throw new RequestError('ms must be between 0 and 400 days')
    engine.advance(by)
    return { nowMs: engine.venue.state.nowMs }
  },
  'POST /mode': ({ engine }, { mode, forMs, next = 'open', nextMs }) => {
    engine.submit({
      kind: 'mode',
      name: modeOf(mode, 'mode'),
      forMs: forMsOf(forMs, 'forMs'),
      next: modeOf(next, 'next'),
      nextMs: forMsOf(nextMs, 'nextMs'),
    })
    return engine.venue.state.mode
  },
  'POST /restart': ({ engine }, { forMs = restart.forMs, nextMs = restart.nextMs, wipe }) => {
    if (wipe === true) engine.submit({ kind: 'wipe' })
    engine.submit({
      kind: 'mode',
      name: 'restarting',
      forMs: forMsOf(forMs, 'forMs'),
      next: 'postOnly',
      nextMs: forMsOf(nextMs, 'nextMs'),
    })
    return engine.venue.state.mode
  },
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
  'POST /fee': (deps, body) => {
    const market = marketIn(body)
    const rate = feePart(body.rate, 'rate', 1)
    const exponent = feePart(body.exponent ?? 1, 'exponent', 10)
    if (!Number.isInteger(exponent)) throw new RequestError('exponent must be whole')
    if (isFeeTooHigh({ rate, exponent }, stateOf(deps.engine.venue, market.conditionId).fair))
      throw new RequestError('rate must not make the fee more than a tenth of the cash at the present price')
    const fee = rate === 0 ? null : { rate, exponent }
    deps.engine.submit({ kind: 'fee', conditionId: market.conditionId, fee })
    return marketView(deps, market)
  },
  'POST /builder-fee': ({ engine }, body) => {
    const code = String(body.code).toLowerCase()
    if (!/^0x[0-9a-f]{64}$/.test(code)) throw new RequestError('code must be 32 bytes')
    const bps = (name: string, max: number) => Math.trunc(feePart(body[name] ?? 0, name, max))
    const fee = { makerBps: bps('makerBps', 50), takerBps: bps('takerBps', 100) }
    engine.submit({ kind: 'builderFee', code, fee })
    return fee
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
  'POST /lose-keys': ({ engine }, { owner }) => {
    const address = addressOf(owner, 'owner').toLowerCase()
    const lost = [...engine.venue.state.keys.values()].filter((key) => key.address === address)
    for (const { key } of lost) engine.submit({ kind: 'deleteKey', key })
    return { lost: lost.length }
  },
  'POST /relayer-quota': ({ engine }, { resetsInMs }) => {
    const ms = numberOf(resetsInMs, 'resetsInMs')
    if (ms < 0 || ms > 400 * 86_400_000) throw new RequestError('resetsInMs must be between 0 and 400 days')
    engine.submit({ kind: 'relayerQuota', resetsInMs: Math.trunc(ms) })
    return engine.venue.state.relayed
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
    const [cash, shares] = await Promise.all([
      reads.dollars(wallet),
      reads.shares(wallet, tokens.map(BigInt)),
    ])
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
}

const dialRoutes: Record<string, Route> = {
  'GET /realism': ({ realism }) => realism.current(),
  'POST /realism': ({ realism }, body) => {
    realism.set(readRealism(body, realism.current()), body)
    return realism.current()
  },
  'POST /settle': async ({ settlement }) => {
    await settlement.runOnce()
    return {}
  },
  'POST /relay': async ({ relay }) => {
    await relay?.runOnce()
    return {}
  },
}

export const controlRoutes: Record<string, Route> = {
  ...commonControls,
  'GET /effects': effects,
  ...timeRoutes,
  ...marketRoutes,
  ...accountRoutes,
  ...dialRoutes,
}

export const serveControl = (deps: ControlDeps): Server => serveRoutes({ routes: controlRoutes, deps })
