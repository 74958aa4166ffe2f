import type { Rpc } from '#world/evm/rpc.ts'
import { accountAddresses, contracts } from './chain/addresses.ts'
import { cashOf } from './decimal.ts'
import type { Engine } from './machine.ts'
import { type Market, outcomeByToken } from './markets.ts'
import type { Activity } from './state.ts'
import { stateOf } from './venue.ts'

/** Reads from the chain what wallets did by themselves: splits, merges, redemptions, deposits and transfers. */

export type Log = {
  address: string
  topics: string[]
  data: string
  transactionHash: string
  blockNumber: string
}

export const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const singleTopic = '0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62'
const batchTopic = '0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb'

const exchanges = [contracts.standardExchange, contracts.negRiskExchange, contracts.exchangeV3].map(
  (address) => address.toLowerCase(),
)
const tokens = [contracts.pusd, contracts.conditionalTokens, contracts.positionManager]
const own = new Set(
  [...Object.values(contracts), ...Object.values(accountAddresses)].map((address) => address.toLowerCase()),
)
const zero = `0x${'0'.repeat(40)}`

/** Blocks that are read again because a reorganisation may have changed them. */
const changedBlocksMax = 30
const blocksMax = 2_000

export const addressIn = (topic: string | undefined): string => `0x${(topic ?? '').slice(-40).toLowerCase()}`
const words = (data: string): bigint[] =>
  (data.slice(2).match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`))

type Move = { from: string; to: string; token: string; amount: bigint }

/** A batch has the positions of two lists, then the lists. */
const batchMoves = (log: Log): Move[] => {
  const all = words(log.data)
  const at = (offset: bigint | undefined): bigint[] => {
    const start = Number(offset ?? 0n) / 32
    const length = Number(all[start] ?? 0n)
    return all.slice(start + 1, start + 1 + length)
  }
  const [ids, amounts] = [at(all[0]), at(all[1])]
  const [from, to] = [addressIn(log.topics[2]), addressIn(log.topics[3])]
  return ids.map((id, index) => ({ from, to, token: String(id), amount: amounts[index] ?? 0n }))
}

const movesOf = (log: Log): Move[] => {
  const [topic] = log.topics
  if (topic === batchTopic) return batchMoves(log)
  const [first = 0n, second = 0n] = words(log.data)
  if (topic === singleTopic)
    return [
      { from: addressIn(log.topics[2]), to: addressIn(log.topics[3]), token: String(first), amount: second },
    ]
  if (topic === transferTopic)
    return [{ from: addressIn(log.topics[1]), to: addressIn(log.topics[2]), token: 'pusd', amount: first }]
  return []
}

type Changes = Map<string, Map<string, bigint>>

/** What each wallet of somebody else has more or less of after the transaction. */
const changesOf = (logs: readonly Log[]): Changes => {
  const changes: Changes = new Map()
  const add = (wallet: string, token: string, amount: bigint): void => {
    if (wallet === zero || own.has(wallet)) return
    const known = changes.get(wallet) ?? new Map<string, bigint>()
    changes.set(wallet, known)
    known.set(token, (known.get(token) ?? 0n) + amount)
  }
  for (const { from, to, token, amount } of logs.flatMap(movesOf)) {
    add(from, token, -amount)
    add(to, token, amount)
  }
  return changes
}

type Row = Omit<Activity, 'id'>
type Context = { engine: Engine; wallet: string; hash: string; isReceived: (token: string) => boolean }

const rowOf = ({ engine, wallet, hash }: Context, fields: Partial<Row> & Pick<Row, 'type'>): Row => ({
  wallet,
  conditionId: '',
  outcome: null,
  side: null,
  shares: 0,
  cash: 0,
  fee: 0,
  atMs: engine.nowMs(),
  hash,
  role: null,
  ...fields,
})

type Pair = readonly [number, number]

const transferRows = (context: Context, { conditionId }: Market, pair: Pair): Row[] =>
  ([0, 1] as const)
    .filter((outcome) => pair[outcome] !== 0)
    .map((outcome) => {
      const side = pair[outcome] > 0 ? 'BUY' : 'SELL'
      const shares = Math.abs(pair[outcome])
      return rowOf(context, { type: 'TRANSFER', conditionId, outcome, side, shares })
    })

const redeemRows = (context: Context, { conditionId }: Market, pair: Pair, payout: number): Row[] =>
  ([0, 1] as const)
    .filter((outcome) => pair[outcome] < 0)
    .map((outcome) => {
      const shares = -pair[outcome]
      const cash = cashOf(shares, outcome === 0 ? payout : 10_000 - payout)
      return rowOf(context, { type: 'REDEEM', conditionId, outcome, shares, cash })
    })

const marketRows = (context: Context, market: Market, pair: Pair): Row[] => {
  const { payout, isReported } = stateOf(context.engine.venue, market.conditionId)
  const [yes, no] = pair
  const conditionId = market.conditionId
  const isMoved = market.tokens.some(context.isReceived)
  if (isReported && payout !== null && (yes < 0 || no < 0) && !isMoved)
    return redeemRows(context, market, pair, payout)
  if (yes === no && yes > 0) return [rowOf(context, { type: 'SPLIT', conditionId, shares: yes, cash: yes })]
  if (yes === no && yes < 0) return [rowOf(context, { type: 'MERGE', conditionId, shares: -yes, cash: -yes })]
  return transferRows(context, market, pair)
}

const walletRows = (context: Context, changes: ReadonlyMap<string, bigint>): Row[] => {
  const pairs = new Map<Market, [number, number]>()
  for (const [token, amount] of changes) {
    const listed = outcomeByToken(token)
    if (!listed) continue
    const pair = pairs.get(listed.market) ?? [0, 0]
    pair[listed.outcome] = Number(amount)
    pairs.set(listed.market, pair)
  }
  const rows = [...pairs].flatMap(([market, pair]) => marketRows(context, market, pair))
  const cash = Number(changes.get('pusd') ?? 0n)
  if (rows.length > 0 || cash === 0) return rows
  return [rowOf(context, { type: cash > 0 ? 'DEPOSIT' : 'WITHDRAWAL', cash: Math.abs(cash) })]
}

const groupByTransaction = (logs: readonly Log[]): Map<string, Log[]> => {
  const groups = new Map<string, Log[]>()
  for (const log of logs) groups.set(log.transactionHash, [...(groups.get(log.transactionHash) ?? []), log])
  return groups
}

const scan = async (engine: Engine, rpc: Rpc): Promise<void> => {
  const { state } = engine.venue
  const head = Number(await rpc.call('eth_blockNumber'))
  if (state.scannedBlock === head) return
  const start = Math.min(state.scannedBlock, head) + 1
  const from = Math.max(0, start - changedBlocksMax)
  const to = Math.min(head, start + blocksMax)
  const hex = (value: number) => `0x${value.toString(16)}`
  const filter = { address: [...tokens, ...exchanges], fromBlock: hex(from), toBlock: hex(to) }
  const logs = (await rpc.call('eth_getLogs', [filter])) as Log[]
  const known = new Set(state.activity.slice(-5_000).map(({ hash, wallet }) => `${hash} ${wallet}`))
  const rows: Row[] = []
  for (const [hash, group] of groupByTransaction(logs)) {
    // Trades are known already.
    if (group.some(({ address }) => exchanges.includes(address.toLowerCase()))) continue
    const all = changesOf(group)
    const isReceived = (token: string) => [...all.values()].some((changes) => (changes.get(token) ?? 0n) > 0n)
    for (const [wallet, changes] of all)
      if (!known.has(`${hash} ${wallet}`))
        rows.push(...walletRows({ engine, wallet, hash, isReceived }, changes))
  }
  engine.submit({ kind: 'scanned', block: to, rows })
}

export const createChainIndex = (engine: Engine, rpc: Rpc) => () => scan(engine, rpc)
