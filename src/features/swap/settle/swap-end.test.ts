import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import type { Chain, Token } from '#kernel/money/chains.ts'
import type { ProviderState, ProviderStatus } from '#kernel/money/swap-provider.ts'
import type { NewEvent, StepResult, TaskView, Tx } from '#kernel/task/task.ts'
import { createLatePaymentKind, type LatePaymentDeps } from './late-payment.ts'
import { trackSwap } from './track.ts'

/**
 * A provider that names payments of others, pays in parts, late, twice, short, in another token, and refunds by dust. What
 * a swap says at its end is what its chains show then, and what changes later is reported.
 */

const seeds = 1_200
const minuteMs = 60_000
const [base, polygon] = ['8453', '137']
const [inUnits, outUnits, minUnits] = [100_000_000n, 99_900_000n, 99_000_000n]
const owner = `0x${'aa'.repeat(20)}`
const tokenOf = (symbol: string, byte: string): Token =>
  ({ symbol, name: symbol, decimals: 6, address: `0x${byte.repeat(20)}` }) as Token
const [sold, bought, other] = [tokenOf('USDC', '11'), tokenOf('USDT', '22'), tokenOf('DAI', '33')]
const coin = tokenOf('ETH', 'ee')
const chains = [
  { id: base, displayName: 'Base', tokens: [sold, other] },
  { id: polygon, displayName: 'Polygon', tokens: [bought, other] },
].map((each) => ({
  ...each,
  family: 'evm',
  native: coin,
  usdc: sold!.address,
  explorerUrl: 'https://x',
  llamaSlug: each.id,
}))

type Payment = { chainId: string; token: Token; units: bigint; hash: string; atMs: number }
/** What the provider says from a time on. */
type Word = { atMs: number; state: ProviderState; names: Payment[]; paidToken?: string }
type Plan = { name: string; words: Word[] }
type Random = (below: number) => number

const randomOf = (seed: number): Random => {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

/** The plans of a provider; each says when it pays, and when it says so. */
function planOf(seed: number): Plan {
  const random = randomOf(seed)
  let hashes = 0
  const pay = (end: 'out' | 'back' | 'other', units: bigint, atMs: number): Payment => ({
    chainId: end === 'back' ? base : polygon,
    token: { out: bought, back: sold, other }[end],
    units,
    hash: `0x${seed.toString(16)}${(hashes++).toString(16).padStart(2, '0')}`.padEnd(66, '0'),
    atMs,
  })
  const missing = () => pay('out', 0n, Number.POSITIVE_INFINITY)
  const soon = () => 1_000 + random(30_000)
  const muchLater = () => (12 + random(20)) * minuteMs
  const part = (of: bigint, low: number, high: number) => (of * BigInt(low + random(high - low))) / 100n
  const parts = (end: 'out' | 'back', whole: bigint, times: number[]) => {
    let left = whole
    return times.map((atMs, at) => {
      const units = at === times.length - 1 ? left : part(left, 5, 60)
      left -= units
      return pay(end, units, atMs)
    })
  }
  const success = (atMs: number, ...names: Payment[]): Word => ({ atMs, state: 'success', names })
  const refund = (atMs: number, ...names: Payment[]): Word => ({ atMs, state: 'refunded', names })
  const failure = (atMs: number): Word => ({ atMs, state: 'failed', names: [] })
  const dust = () => BigInt(1 + random(50))
  const plans: Record<string, () => Word[]> = {
    whole: () => [success(soon(), pay('out', outUnits - BigInt(random(500_000)), 0))],
    parts() {
      const times = [soon(), 40_000, 50_000 + random(8) * minuteMs]
      const paid = parts('out', outUnits, times)
      return paid.map(({ atMs }, at) => success(atMs, ...paid.slice(0, at + 1)))
    },
    'parts that come too late'() {
      const paid = parts('out', outUnits, [soon(), muchLater(), 40 * minuteMs])
      return paid.map((each) => success(each.atMs, each))
    },
    twice: () => [success(soon(), pay('out', outUnits, 0), pay('out', outUnits, 10))],
    short: () => [success(soon(), pay('out', part(minUnits, 1, 99), 0))],
    'short, and the rest back'() {
      const paid = pay('out', part(outUnits, 10, 90), 0)
      const at = 20_000 + random(9) * minuteMs
      return [
        success(soon(), paid),
        refund(at, pay('back', inUnits - paid.units - BigInt(random(90_000)), at)),
      ]
    },
    'a payment of somebody else, and a refund'() {
      const at = 30_000 + random(9) * minuteMs
      const back = pay('back', inUnits - BigInt(random(100_000)), at)
      return [success(soon(), pay('out', dust(), 0)), refund(at, back)]
    },
    'a payment of somebody else, and a late refund'() {
      const at = muchLater()
      return [success(soon(), pay('out', dust(), 0)), refund(at, pay('back', inUnits - 5_000n, at))]
    },
    'a payment that is not there': () => [
      success(soon(), missing()),
      refund(45_000, pay('back', inUnits, 0)),
    ],
    'refund by dust': () => [refund(soon(), pay('back', dust(), 0))],
    'refund by dust, and the rest'() {
      const [first, at] = [pay('back', dust(), 0), 20_000 + random(30) * minuteMs]
      return [refund(soon(), first), refund(at, pay('back', inUnits - first.units - 3_000n, at))]
    },
    'refund in parts that are named alone'() {
      const paid = parts('back', inUnits - 2_000n, [soon(), 60_000, 90_000])
      return paid.map((each) => refund(each.atMs, each))
    },
    'refund within a success': () => [success(soon(), pay('out', dust(), 0), pay('back', inUnits, 5))],
    'another token': () => [{ ...success(soon(), pay('other', outUnits, 0)), paidToken: other.address }],
    'dust of another token': () => [
      { ...success(soon(), pay('other', dust(), 0)), paidToken: other.address },
    ],
    'a failure, and then the fill': () => {
      const at = muchLater()
      return [failure(soon()), success(at, pay('out', outUnits, at))]
    },
    'a failure, and then parts of both': () => {
      const at = 15 * minuteMs
      const paid = [pay('out', part(minUnits, 5, 60), at), pay('back', part(inUnits, 5, 30), at)]
      return [failure(soon()), success(at, paid[0]!), refund(20 * minuteMs, paid[1]!)]
    },
    'a failure that is taken back': () => [failure(soon()), success(5 * minuteMs, pay('out', outUnits, 0))],
  }
  const names = Object.keys(plans)
  const name = names[seed % names.length]!
  return { name, words: plans[name]!().toSorted((a, b) => a.atMs - b.atMs) }
}

type Row = { result: object | null; error: object | null; data: Record<string, unknown> }
type Claim = { tx_hash: string; part: string; chain: string; claimant: string }

/** The database of one swap: its claims, and its row once it has ended. */
function createTables() {
  const claims: Claim[] = []
  let row: Row | undefined
  const answer = (text: string, values: unknown[]): object[] => {
    if (text.includes('union all select tx_hash'))
      return claims.filter(({ chain, claimant }) => chain === values[0] && claimant !== values[3])
    if (text.includes('insert into claimed_arrival')) {
      const [chain, tx_hash, part, , claimant] = values as string[]
      const isNew = !claims.some((each) => each.tx_hash === tx_hash && each.part === part)
      if (isNew) claims.push({ chain: chain!, tx_hash: tx_hash!, part: part!, claimant: claimant! })
      return [{ is_new: isNew }]
    }
    if (text.startsWith('select result')) return row ? [row] : []
    if (text.startsWith('update task')) {
      const [result, error, data] = values.slice(1, 4).map((each) => JSON.parse(String(each)))
      row = { result, error, data }
    }
    return []
  }
  const db = {
    query: async ({ text, values }: { text: string; values: unknown[] }) => ({ rows: answer(text, values) }),
  }
  return {
    db: db as unknown as Tx & SwapDeps['db'],
    end(next: Row) {
      row = next
    },
    row: () => row!,
  }
}

type Shown = Map<string, bigint>
const keyOf = (chainId: string, address: string) => `${chainId} ${address}`
function addTo(shown: Shown, key: string, units: bigint): Shown {
  const sum = (shown.get(key) ?? 0n) + units
  if (sum === 0n) shown.delete(key)
  else shown.set(key, sum)
  return shown
}

/** What the chains show of all that was named so far, with the deposit. */
const chainShows = ({ words }: Plan, nowMs: number): Shown =>
  [...new Set(words.filter(({ atMs }) => atMs <= nowMs).flatMap(({ names }) => names))]
    .filter(({ atMs }) => atMs <= nowMs)
    .reduce(
      (shown, { chainId, token, units }) => addTo(shown, keyOf(chainId, token.address), units),
      new Map([[keyOf(base, sold.address), -inUnits]]),
    )
const taskShows = ({ balance_changes }: Pick<SwapTaskData, 'balance_changes'>): Shown =>
  (balance_changes ?? []).reduce(
    (shown, { chain_id, token_address, amount }) =>
      addTo(shown, keyOf(String(chain_id), String(token_address)), BigInt(String(amount))),
    new Map<string, bigint>(),
  )

type Ended = {
  error?: { code: string }
  end: string
  result: Record<string, unknown>
  data: Partial<SwapTaskData>
}

function createSwap(plan: Plan) {
  const { db, ...tables } = createTables()
  let nowMs = 0
  let watch: Record<string, unknown> | undefined
  const events: NewEvent[] = []
  const wordNow = () => plan.words.findLast(({ atMs }) => atMs <= nowMs)
  const status = async (): Promise<ProviderStatus> => {
    const word = wordNow()
    return {
      state: word?.state ?? 'waiting',
      reason: null,
      refundReason: null,
      originTxs: [],
      destinationTxs: (word?.names ?? []).flatMap(({ hash }) =>
        [base, polygon].map((chainId) => ({ chainId, txHash: hash })),
      ),
      refund: null,
      paidToken: word?.paidToken ?? null,
    }
  }
  const all = plan.words.flatMap(({ names }) => names)
  const deps = {
    db,
    chains: chains as unknown as Chain[],
    providers: [{ name: 'relay', status }],
    prices: { get: async ([key]: string[]) => new Map([[key, { price: '1' }]]) },
    changed() {},
    arrivals: {
      of: async ({ chainId, txHash }: { chainId: string; txHash: string }) => {
        const found = all.find((each) => each.hash === txHash && each.chainId === chainId)
        if (!found || found.atMs > nowMs) return undefined
        const gain = { token: found.token.address, amountUnits: found.units, part: '0' }
        return { gained: [gain], isFinal: true, block: 200, at: new Date(found.atMs) }
      },
    },
    async watchLatePayment(_tx: Tx, { id, userId, createdAt, data }: SwapTask) {
      watch = { swap: data, task_id: id, user_id: userId, created_at: createdAt.toISOString() }
    },
  } as unknown as SwapDeps
  const engine = {
    transact: (run: (tx: Tx) => Promise<unknown>) => run(db),
    events: {
      add: async (_tx: Tx, _user: string, reported: NewEvent[]) => void events.push(...reported),
      notify() {},
    },
    clock: { now: () => new Date(nowMs) },
  } as unknown as LatePaymentDeps
  const endOn = (chain_id: string, token: Token) => ({ chain_id, token, is_native: false, account: owner })
  let data = {
    origin: endOn(base!, sold!),
    destination: endOn(polygon!, bought!),
    amount_in: String(inUnits),
    amount_out_min: String(minUnits),
    usd_micros: '100000000',
    settled_by: 'status',
    quote: { amount_out: String(outUnits) },
    provider: 'relay',
    provider_request_id: '0x1',
    deposit_tx: '0xdeposit',
    deposited_at: new Date(0).toISOString(),
    balance_changes: [
      { chain_id: base, token_address: sold!.address, symbol: 'USDC', amount: `-${inUnits}`, decimals: 6 },
    ],
  } as unknown as SwapTaskData
  const { signal } = new AbortController()
  const context = () => ({ now: new Date(nowMs), signal, stopping: signal })
  const { steps } = createLatePaymentKind(deps, engine)
  return {
    async track(atMs: number): Promise<Ended | undefined> {
      nowMs = atMs
      const task = { id: 't', userId: 'u', data, effects: [], createdAt: new Date(0) } as unknown as SwapTask
      const result = await trackSwap(deps, task, { ...context(), next: 'track' })
      data = { ...data, ...result.data }
      if (!('end' in result)) return undefined
      await result.writes?.(db)
      const error = 'error' in result ? result.error : null
      tables.end({ result: result.result ?? null, error, data })
      return { ...result, data } as unknown as Ended
    },
    async look(atMs: number): Promise<void> {
      nowMs = atMs
      if (!watch) return
      const deadline = new Date(20 * 24 * 60 * minuteMs)
      const task = { id: 'w', data: watch, deadline, createdAt: new Date(0) }
      const result: StepResult = await steps.watch!(task as unknown as TaskView, context())
      if ('end' in result) watch = undefined
    },
    isWatched: () => watch !== undefined,
    row: tables.row,
    events,
  }
}

const lastMs = 60 * minuteMs

async function assertTrue(seed: number): Promise<void> {
  const plan = planOf(seed)
  const swap = createSwap(plan)
  const times = plan.words.flatMap(({ atMs }) => [atMs + 1, atMs + 1 + (seed % 400)])
  const polls = [...times, ...Array.from({ length: 20 }, (_, at) => (at + 1) * 3 * minuteMs + (seed % 977))]
  polls.sort((a, b) => a - b)
  let endedMs = 0
  let ended: Ended | undefined
  for (const atMs of polls) {
    ended = await swap.track(atMs)
    endedMs = atMs
    if (ended) break
  }
  const where = `seed ${seed}: ${plan.name}`
  assert.ok(ended, `${where} has not ended`)
  assert.deepEqual(taskShows(ended.data), chainShows(plan, endedMs), where)
  const arrived = (endedAt: Shown) => endedAt.get(keyOf(polygon!, bought!.address)) ?? 0n
  const reported = BigInt(String(ended.result.amount_out))
  assert.equal(reported, arrived(chainShows(plan, endedMs)), where)
  assert.equal(ended.end === 'completed', reported >= minUnits, where)
  const back = inUnits + (chainShows(plan, endedMs).get(keyOf(base!, sold!.address)) ?? 0n)
  const isReturned = back > 0n && Number(back) / Number(inUnits) + Number(reported) / Number(outUnits) >= 0.75
  const isOther = plan.name === 'another token'
  // What neither filled nor refunded the swap has not changed for ten minutes.
  const since = plan.words.findLast(({ atMs }) => atMs <= endedMs)!.atMs
  if (reported < minUnits && !isReturned && !isOther) assert.ok(endedMs - since >= 10 * minuteMs, where)
  if (!isReturned) assert.notEqual(ended.error?.code, 'refunded', where)
  const isWhole = reported >= minUnits || back >= inUnits
  assert.equal(swap.isWatched(), !isWhole, `${where}: watched`)
  for (const atMs of [...times.filter((each) => each > endedMs), lastMs + minuteMs]) await swap.look(atMs)
  assert.deepEqual(
    taskShows(swap.row().data),
    chainShows(plan, isWhole ? endedMs : lastMs),
    `${where}: later`,
  )
  const later = swap.events.reduce(
    (shown, { data }) => {
      const { chain_id, token_address, amount } = data as Record<string, string>
      return addTo(shown, keyOf(chain_id!, token_address!), BigInt(amount!))
    },
    new Map(taskShows(ended.data)),
  )
  assert.deepEqual(later, taskShows(swap.row().data), `${where}: events`)
}

test(`${seeds} swaps of a provider that lies say at their end what the chains show, and report what changes later`, async () => {
  for (let seed = 1; seed <= seeds; seed += 1) await assertTrue(seed)
})
