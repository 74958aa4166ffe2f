/** What a trader of a storm does next, drawn from its own sequence. */
import assert from 'node:assert/strict'
import { encodeFunctionData } from 'viem'
import { negRiskAdapterAbi } from '#world/polymarket/chain/abis.ts'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import { mergeCall, splitCall } from '#world/polymarket/chain/calls.ts'
import type { Call, ChainEvent, SignedOrder } from '#world/polymarket/chain/chain-terms.ts'
import { exchangeOf, orderHash } from '#world/polymarket/chain/orders.ts'
import { type Market, markets, type OutcomeIndex } from '#world/polymarket/markets.ts'
import { nextInteger, nextRandom } from '#world/venue-core/random.ts'
import { orderOf } from './polygon.ts'
import type { StormTrader } from './storm-trader.ts'

export type Counts = Record<string, number>

const unit = 1_000_000n
const batchMax = 8
/** How many open orders a trader remembers. */
const openMax = 40

const pick = <T>({ random }: StormTrader, list: readonly T[]): T =>
  list[nextInteger(random, list.length)] as T
const chance = ({ random }: StormTrader, share: number): boolean => nextRandom(random) < share

const kinds = ['GTC', 'GTC', 'GTC', 'GTC', 'GTD', 'FOK', 'FAK', 'postOnly'] as const
type Draft = {
  id: string
  type: 'GTC' | 'GTD' | 'FOK' | 'FAK'
  isPostOnly: boolean
  signed: SignedOrder
  expiration: string
}

/** Around the pinned price: half of the orders meet those of other traders, some the quotes beyond. */
const drawOrder = async (trader: StormTrader): Promise<Draft> => {
  const { random } = trader
  const market = pick(trader, markets)
  const kind = pick(trader, kinds)
  const type = kind === 'postOnly' ? 'GTC' : kind
  const outcome = nextInteger(random, 2) as OutcomeIndex
  const side = nextInteger(random, 2) as 0 | 1
  const away = chance(trader, 0.5) ? 0 : nextInteger(random, 7) - 3
  const fair = outcome === 0 ? market.fair : 10_000 - market.fair
  const price = BigInt((fair + away * market.tick) / 10)
  // In tens, so that the cash of every price is a whole number of cents.
  const shares = 10n * BigInt(1 + nextInteger(random, 6)) * unit
  const tokenId = BigInt(market.tokens[outcome])
  const exchange = exchangeOf(market.chain)
  const signed = await orderOf(trader, exchange, { side, tokenId, shares, price })
  // The venue ends such an order a minute before its time.
  const seconds = Math.floor(Date.now() / 1_000) + 61 + nextInteger(random, 5)
  return {
    id: orderHash(signed, exchange),
    type,
    isPostOnly: kind === 'postOnly',
    signed,
    expiration: type === 'GTD' ? String(seconds) : '0',
  }
}

const wireOf = ({ apiKey }: StormTrader, { type, isPostOnly, signed, expiration }: Draft) => {
  const { side, ...fields } = signed
  const texts = Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'bigint' ? String(value) : value]),
  )
  return {
    order: { ...texts, side: side === 0 ? 'BUY' : 'SELL', expiration },
    owner: apiKey,
    orderType: type,
    postOnly: isPostOnly,
  }
}

type Reply = { error?: string; errorMsg?: string; orderID?: string; status?: string }

/** An order that was sent twice because its first reply was lost is known by the second one. */
const duplicate = /^order (0x[0-9a-f]{64}) is invalid\. Duplicated/

const refusals: readonly [name: string, words: RegExp][] = [
  ['shortOfFunds', /^not enough balance/],
  ['killed', /^order couldn't be fully filled|^no orders found to match/],
  ['tooSmall', /^invalid amount for a marketable/],
  ['wouldCross', /^invalid post-only order/],
  ['expired', /^invalid expiration/],
]

/** The venue reads the date of an order before it looks for a duplicate, so that this refusal of a repeat says nothing. */
const isInRecord = async ({ send }: StormTrader, id: string): Promise<boolean> => {
  const { status } = await send('GET', `/data/order/${id}`)
  assert.ok(status === 200 || status === 404, `${id}: ${status}`)
  return status === 200
}

type Sent = { draft: Draft; reply: Reply; isRepeat: boolean }

const remember = async (
  trader: StormTrader,
  { draft, reply, isRepeat }: Sent,
  counts: Counts,
): Promise<void> => {
  const add = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1
  }
  const { id, type, isPostOnly } = draft
  const error = reply.error ?? reply.errorMsg ?? ''
  if (error === '') {
    assert.equal(reply.orderID, id)
    add(reply.status as string)
  } else if (isRepeat && duplicate.exec(error)?.[1] === id) add('acceptedUnheard')
  else {
    const known = refusals.find(([, words]) => words.test(error))
    assert.ok(known, `an order was refused: ${error}`)
    const [name] = known
    const isUnheard = name === 'expired' && isRepeat && (await isInRecord(trader, id))
    add(isUnheard ? 'acceptedUnheard' : name)
    if (!isUnheard) return
    add('foundByHash')
  }
  trader.orders.set(id, { type, isPostOnly, isCanceled: false })
  if (trader.open.push(id) > openMax) trader.open.shift()
}

const placeOne = async (trader: StormTrader, counts: Counts): Promise<number> => {
  const draft = await drawOrder(trader)
  const { body, isRepeat } = await trader.send('POST', '/order', wireOf(trader, draft))
  await remember(trader, { draft, reply: body as Reply, isRepeat }, counts)
  return 1
}

const placeBatch = async (trader: StormTrader, counts: Counts): Promise<number> => {
  const drafts: Draft[] = []
  for (let count = 2 + nextInteger(trader.random, batchMax - 1); count > 0; count--)
    drafts.push(await drawOrder(trader))
  const wires = drafts.map((draft) => wireOf(trader, draft))
  const { body, isRepeat } = await trader.send('POST', '/orders', wires)
  assert.ok(Array.isArray(body), JSON.stringify(body))
  for (const [at, draft] of drafts.entries())
    await remember(trader, { draft, reply: body[at] as Reply, isRepeat }, counts)
  return drafts.length
}

const cancel = async (trader: StormTrader, counts: Counts): Promise<void> => {
  const { open } = trader
  const one = () =>
    trader.send('DELETE', '/order', { orderID: open[nextInteger(trader.random, open.length)] })
  const several = () => trader.send('DELETE', '/orders', open.splice(0, 1 + nextInteger(trader.random, 6)))
  const ofMarket = () =>
    trader.send('DELETE', '/cancel-market-orders', { market: pick(trader, markets).conditionId })
  const all = () => trader.send('DELETE', '/cancel-all')
  const ways = open.length === 0 ? [ofMarket, all] : [one, one, several, several, ofMarket, all]
  const { body } = await pick(trader, ways)()
  const { canceled } = body as { canceled?: string[] }
  assert.ok(canceled, JSON.stringify(body))
  for (const id of canceled) {
    const order = trader.orders.get(id)
    // An order whose first reply was lost.
    if (order) order.isCanceled = true
    counts.canceled = (counts.canceled ?? 0) + 1
  }
}

/** A transaction of the trader's own, and what it changes where it succeeds. */
type ChainAct = { name: string; call: Call; changes: [token: string, units: bigint][] }

const splitOrMerge = (trader: StormTrader): ChainAct => {
  const { chain, tokens } = pick(trader, markets)
  const isSplit = chance(trader, 0.5)
  const amount = BigInt(1 + nextInteger(trader.random, 9_999_999))
  const signed = isSplit ? amount : -amount
  return {
    name: isSplit ? 'split' : 'merged',
    call: isSplit ? splitCall(chain, amount) : mergeCall(chain, amount),
    changes: [['pusd', -signed], ...tokens.map((token): [string, bigint] => [token, signed])],
  }
}

const converted = markets.flatMap((market) =>
  market.chainEvent?.protocol === 'v1' && market.chainEvent.markets[0] === market.chain
    ? [market.chainEvent]
    : [],
)
const siblingsOf = (event: ChainEvent): readonly Market[] =>
  markets.filter(({ chainEvent }) => chainEvent === event)

const convert = (trader: StormTrader): ChainAct => {
  const event = pick(trader, converted)
  const siblings = siblingsOf(event)
  const set = 1 + nextInteger(trader.random, 2 ** siblings.length - 1)
  const amount = BigInt(1 + nextInteger(trader.random, 5_000_000))
  const given = siblings.filter((_, at) => (set >> at) & 1)
  const data = encodeFunctionData({
    abi: negRiskAdapterAbi,
    functionName: 'convertPositions',
    args: [event.eventId, BigInt(set), amount],
  })
  return {
    name: 'converted',
    call: { to: contracts.negRiskAdapter, data },
    changes: [
      ['usdce', amount * BigInt(given.length - 1)],
      ...siblings.map((market): [string, bigint] =>
        given.includes(market) ? [market.tokens[1], -amount] : [market.tokens[0], amount],
      ),
    ],
  }
}

const transact = async (trader: StormTrader, counts: Counts): Promise<void> => {
  const { name, call, changes } = chance(trader, 0.6) ? splitOrMerge(trader) : convert(trader)
  const hasSucceeded = await trader.execute(call)
  const counted = hasSucceeded ? name : 'refusedOnChain'
  counts[counted] = (counts[counted] ?? 0) + 1
  if (!hasSucceeded) return
  for (const [token, units] of changes) trader.changes.set(token, (trader.changes.get(token) ?? 0n) + units)
}

/** Places, cancels or transacts; returns how many orders that were. */
export const actOnce = async (trader: StormTrader, counts: Counts): Promise<number> => {
  const drawn = nextRandom(trader.random)
  if (drawn < 0.78) return placeOne(trader, counts)
  if (drawn < 0.86) return placeBatch(trader, counts)
  if (drawn < 0.97) await cancel(trader, counts)
  else await transact(trader, counts)
  return 0
}
