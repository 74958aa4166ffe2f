/** Compares, to the unit, what a market says has happened with what its chain has. */
import assert from 'node:assert/strict'
import { type Hex, parseEventLogs, parseUnits } from 'viem'
import { exchangeAbi } from '#world/polymarket/chain/abis.ts'
import { addressOf } from '#world/polymarket/chain/accounts.ts'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import type { Address } from '#world/polymarket/chain/chain-terms.ts'
import { createReads } from '#world/polymarket/chain/reads.ts'
import { marketByCondition, markets } from '#world/polymarket/markets.ts'
import { eventually } from '../../../test/harness/gateway.ts'
import type { Effects, PlacedOrder, Trade } from './prediction-world.ts'
import type { Counts } from './storm-acts.ts'
import type { StormTrader } from './storm-trader.ts'
import type { StormWorld } from './storm-world.ts'

const exchanges = [contracts.standardExchange, contracts.negRiskExchange, contracts.exchangeV3]
const tokens = markets.flatMap((market) => market.tokens)
const units = (text: string): bigint => parseUnits(text, 6)
const settledMs = 1_800_000

/** Blocks that are read again: a killed chain has each settlement in the block that it had before. */
const overlap = 64n

type Settlement = { hash: Hex; fills: string[]; block: number }

export type SettlementLog = {
  /** Reads the blocks since the last call: the node drops old events. */
  read: () => Promise<void>
  /** Reads the last blocks, and reports what an earlier reading has found wrong. */
  finish: () => Promise<void>
  /** By key: more than one would be a trade that moved twice. */
  byKey: Map<string, Settlement[]>
}

type Log = Parameters<typeof parseEventLogs>[0]['logs'][number]

/** All settlements, from the events of the exchanges alone; a killed chain has each in the block that it had before. */
export const openSettlementLog = ({ rpc }: Pick<StormWorld, 'rpc'>): SettlementLog => {
  const byKey: SettlementLog['byKey'] = new Map()
  let next = 0n
  let reading: Promise<void> | undefined
  let failure: unknown
  const readNow = async (): Promise<void> => {
    const head = BigInt((await rpc.call('eth_blockNumber')) as Hex)
    // A chain that was killed does not have the empty blocks again with which it ended.
    const from = (next < head + 1n ? next : head + 1n) - overlap
    const filter = {
      address: exchanges,
      fromBlock: `0x${(from < 0n ? 0n : from).toString(16)}`,
      toBlock: `0x${head.toString(16)}`,
    }
    const logs = (await rpc.call('eth_getLogs', [filter])) as Log[]
    next = head + 1n
    const ofTransaction = Map.groupBy(
      parseEventLogs({ abi: exchangeAbi, logs }),
      (log) => log.transactionHash,
    )
    for (const [hash, events] of ofTransaction) {
      const fills = events.flatMap((event) => {
        if (event.eventName !== 'OrderSettled') return []
        const { orderHash, maker, side, shares, cash, fee } = event.args
        return `${orderHash} ${maker.toLowerCase()} ${side === 0 ? 'BUY' : 'SELL'} ${shares} ${cash} ${fee}`
      })
      for (const event of events)
        if (event.eventName === 'OrdersMatched') {
          const { key } = event.args
          const block = Number(event.blockNumber)
          const list = byKey.get(key) ?? []
          const known = list.find((each) => each.hash === hash)
          if (known) assert.equal(block, known.block, `the block of ${hash}`)
          else byKey.set(key, [...list, { hash, fills: fills.sort(), block }])
        }
    }
  }
  return {
    byKey,
    // A node that is down is read later.
    read: () => {
      reading ??= readNow()
        .catch((error: unknown) => {
          if (error instanceof assert.AssertionError) failure ??= error
        })
        .finally(() => {
          reading = undefined
        })
      return reading
    },
    finish: async () => {
      await reading
      if (failure) throw failure
      await readNow()
    },
  }
}

export type Balances = Map<string, bigint>

export const readBalances = async (
  { rpc }: Pick<StormWorld, 'rpc'>,
  wallets: readonly Address[],
): Promise<Balances> => {
  const reads = createReads(rpc)
  const balances: Balances = new Map()
  for (const wallet of wallets) {
    const [dollars, shares] = await Promise.all([
      reads.dollars(wallet),
      reads.shares(wallet, tokens.map(BigInt)),
    ])
    const owner = wallet.toLowerCase()
    balances.set(`${owner} pusd`, dollars.pusd).set(`${owner} usdce`, dollars.usdce)
    for (const [at, token] of tokens.entries()) balances.set(`${owner} ${token}`, shares[at] as bigint)
  }
  return balances
}

/** Everybody whom a settlement pays. */
export const walletsOf = (traders: readonly Pick<StormTrader, 'address'>[]): Address[] => [
  ...traders.map(({ address }) => address),
  addressOf('maker'),
  addressOf('operator'),
]

const fillText = ({ orderId, wallet, side, shares, cash, fee }: Trade['legs'][number]): string =>
  `${orderId} ${wallet} ${side} ${units(shares)} ${units(cash)} ${units(fee)}`

/** Each confirmed trade is one settlement on the chain with the same parts, and no other trade is one. */
export const assertTradesAreSettlements = (trades: readonly Trade[], byKey: SettlementLog['byKey']): void => {
  for (const { id, key, status, hash, legs } of trades) {
    const found = (byKey.get(key) ?? []).map((each) => ({ hash: each.hash, fills: each.fills }))
    if (status !== 'CONFIRMED') {
      assert.equal(status, 'FAILED', `trade ${id}`)
      assert.equal(found.length, 0, `${id} has failed and moved`)
      continue
    }
    assert.deepEqual(found, [{ hash, fills: legs.map(fillText).sort() }], `trade ${id}`)
  }
  assert.equal(byKey.size, trades.filter(({ status }) => status === 'CONFIRMED').length)
}

type Compared = {
  before: Balances
  after: Balances
  traders: readonly Pick<StormTrader, 'address' | 'changes'>[]
}

/** Each balance is what it was, with what the confirmed trades moved. */
export const assertBalances = ({ before, after, traders }: Compared, trades: readonly Trade[]): void => {
  const expected = new Map(before)
  const add = (wallet: string, token: string, amount: bigint) => {
    const key = `${wallet.toLowerCase()} ${token}`
    expected.set(key, (expected.get(key) ?? 0n) + amount)
  }
  for (const { address, changes } of traders)
    for (const [token, amount] of changes) add(address, token, amount)
  for (const { status, conditionId, legs } of trades) {
    if (status !== 'CONFIRMED') continue
    for (const { wallet, outcome, side, shares, cash, fee } of legs) {
      const sign = side === 'BUY' ? 1n : -1n
      add(wallet, marketByCondition(conditionId)?.tokens[outcome] ?? '', sign * units(shares))
      add(wallet, 'pusd', -sign * units(cash) - units(fee))
      add(addressOf('operator'), 'pusd', units(fee))
    }
  }
  assert.deepEqual(after, expected)
}

type Row = {
  id: string
  status: string
  asset_id: string
  side: 'BUY' | 'SELL'
  size: string
  maker_address: string
  maker_orders: { maker_address: string; asset_id: string; side: 'BUY' | 'SELL'; matched_amount: string }[]
}

const ownRows = async ({ send }: StormTrader): Promise<Row[]> => {
  const rows: Row[] = []
  for (let cursor = ''; cursor !== 'LTE='; ) {
    const { body } = await send('GET', `/data/trades?next_cursor=${encodeURIComponent(cursor)}`)
    const page = body as { data: Row[]; next_cursor: string }
    rows.push(...page.data)
    cursor = page.next_cursor
  }
  return rows
}

/** What a trader reads of its own trades alone explains its shares. */
const assertOwnRows = async (trader: StormTrader, before: Balances, after: Balances): Promise<void> => {
  const own = trader.address.toLowerCase()
  const expected = new Map(tokens.map((token) => [token, before.get(`${own} ${token}`) as bigint]))
  const add = (token: string, amount: bigint) => expected.set(token, (expected.get(token) as bigint) + amount)
  for (const [token, amount] of trader.changes) if (expected.has(token)) add(token, amount)
  const rows = await ownRows(trader)
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length, 'no row is listed twice')
  for (const { status, maker_orders: makers, size, ...taker } of rows) {
    if (status !== 'TRADE_STATUS_CONFIRMED') continue
    for (const { maker_address: wallet, asset_id: token, side, matched_amount: shares } of [
      { ...taker, matched_amount: size },
      ...makers,
    ])
      if (wallet.toLowerCase() === own) add(token, side === 'BUY' ? units(shares) : -units(shares))
  }
  for (const [token, amount] of expected)
    assert.equal(after.get(`${own} ${token}`), amount, `${own} ${token}`)
}

/** The Data API has what the chain has, as soon as it has read the last blocks. */
const assertPositions = async (
  world: StormWorld,
  { address }: StormTrader,
  after: Balances,
): Promise<void> => {
  const own = address.toLowerCase()
  const held = new Map(tokens.map((token) => [token, after.get(`${own} ${token}`) as bigint]))
  let listed = new Map<string, bigint>()
  const isRead = async () => {
    const query = new URLSearchParams({ user: address, sizeThreshold: '0', limit: '500' })
    const answer = await world.ask(`${world.urls().polymarket.data}/positions?${query}`, { method: 'GET' })
    const rows = (answer?.body ?? []) as { asset: string; size: number }[]
    listed = new Map(rows.map(({ asset, size }) => [asset, units(String(size))]))
    return tokens.every((token) => (listed.get(token) ?? 0n) === held.get(token)) || undefined
  }
  await eventually(isRead, 'the positions').catch(() => assert.deepEqual(listed, held))
}

/** What was accepted is in the record, within its size, with all of its trades, and nothing else is. */
const assertOrders = (traders: readonly StormTrader[], { orders, trades }: Effects): void => {
  const records = new Map(orders.map((order): [string, PlacedOrder] => [order.id, order]))
  const takers = new Set(trades.map(({ legs }) => legs[0]?.orderId))
  const matched = new Map<string, bigint>()
  for (const { legs } of trades)
    for (const { orderId, shares } of legs) matched.set(orderId, (matched.get(orderId) ?? 0n) + units(shares))
  const accepted = traders.flatMap(({ orders: own }) => [...own])
  assert.equal(records.size, accepted.length)
  for (const [id, { type, isPostOnly, isCanceled }] of accepted) {
    const order = records.get(id)
    assert.ok(order, `${id} was accepted`)
    assert.equal(units(order.matched), matched.get(id) ?? 0n, `order ${id}`)
    const isMarketBuy = order.side === 'BUY' && (type === 'FOK' || type === 'FAK')
    // A market order to buy is bounded by its dollars.
    if (!isMarketBuy) assert.ok(units(order.matched) <= units(order.size), `${id} is within its size`)
    const isWhole = type === 'FAK' || isMarketBuy || order.matched === order.size
    assert.ok(
      order.status === 'CANCELED' || (order.status === 'MATCHED' && isWhole),
      `${id}: ${order.status}`,
    )
    if (isCanceled) assert.equal(order.status, 'CANCELED', `${id} was canceled`)
    if (isPostOnly) assert.ok(!takers.has(id), `${id} only makes`)
  }
}

/** Ends all orders and waits for all trades; then everything agrees. */
export const assertConserved = async (
  world: StormWorld,
  { traders, before, log }: { traders: readonly StormTrader[]; before: Balances; log: SettlementLog },
): Promise<Effects> => {
  // Orders in their delay match until they are canceled.
  for (const { send } of traders) await send('DELETE', '/cancel-all')
  await eventually(
    async () => {
      await log.read()
      return (await world.openTrades()) === 0 || undefined
    },
    'the end of all trades',
    settledMs,
  )
  await log.finish()
  const effects = await world.effects()
  const after = await readBalances(world, walletsOf(traders))
  assertTradesAreSettlements(effects.trades, log.byKey)
  assertBalances({ before, after, traders }, effects.trades)
  assertOrders(traders, effects)
  for (const trader of traders) {
    await assertOwnRows(trader, before, after)
    await assertPositions(world, trader, after)
  }
  const { supply, locked, usdc, usdce } = await createReads(world.rpc).backing()
  assert.equal(supply + locked, usdc + usdce)
  return effects
}

/** How many of each kind of trade there were. */
export const countTrades = (trades: readonly Trade[]): Counts => {
  const counts: Counts = {}
  const add = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1
  }
  for (const { status, attempts, conditionId, legs } of trades) {
    if (attempts > 1) add('retried')
    add(status === 'FAILED' ? 'failed' : 'confirmed')
    if (status === 'FAILED') continue
    const chain = marketByCondition(conditionId)?.chain
    add(`${chain?.protocol}${chain?.isNegRisk ? 'NegRisk' : ''}`)
    const yes = legs
      .filter(({ outcome }) => outcome === 0)
      .reduce((sum, { side, shares }) => sum + (side === 'BUY' ? units(shares) : -units(shares)), 0n)
    add(yes > 0n ? 'minted' : yes < 0n ? 'burned' : 'swapped')
  }
  return counts
}
