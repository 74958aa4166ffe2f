import type { Transact } from '#durable/transactions.ts'
import type { NewSchedule } from '#durable/upkeep/scheduler.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import { gauge, type Metric } from '#kernel/metrics.ts'
import { nativeSentinel, sameAddress } from '#kernel/money/chains.ts'
import type { StepContext, TaskKind } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { IncomingTransfer } from '#upstreams/evm/evm.ts'
import type { FoundPayment } from '#upstreams/evm/till-contract.ts'
import type { FoundTransfer } from '#upstreams/solana/incoming-transfers.ts'
import { dustUnits } from './dust-payment.ts'
import * as store from './payment-store.ts'
import { judgePayment } from './payment-verdict.ts'
import { type EvmTill, rechargeKind, type SvmTill, type Till } from './till.ts'

/**
 * This module searches final blocks for everything that was sent to the tills, so that no payment is lost. A
 * payment without a task stays stray until an operator has returned it.
 */

type SearchDeps = {
  db: Queryable
  transact: Transact
  tills: readonly Till[]
  paymentsOf: (logs: Awaited<ReturnType<EvmTill['chain']['logs']>>['logs'], till: string) => FoundPayment[]
  taskOfWord: (word: string) => string | undefined
  paidTopics: unknown[]
  clock: Clock
  log: Log
}

const kind = 'credits_payment_search'
/** The id of the search is fixed, so that all instances share one schedule. */
const id = '00000000-0000-7000-8000-0000000c4ed1'
const everySeconds = 60
/** How many blocks before the newest final one the first search begins. */
const firstBlocks = 1_000n
const judgedMax = 500

export const paymentSearchSchedule = (now: Date): NewSchedule => ({
  id,
  kind,
  input: {},
  everySeconds,
  firstAt: now,
})

export function createPaymentSearch(deps: SearchDeps) {
  const { db, tills, clock, log } = deps

  const step = async (_task: unknown, { signal }: StepContext) => {
    let searched = 0
    for (const till of tills) {
      if (signal.aborted) break
      try {
        await searchTill(deps, till)
        searched += 1
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        log.warn(
          { error, chain: till.chain.row.id },
          'payments not searched; the next search continues there',
        )
      }
    }
    await judgePending(deps)
    return { end: 'completed' as const, outcome: 'executed' as const, result: { searched } }
  }

  const searchKind: TaskKind = { kind, version: 1, priority: 2, steps: { search: step }, isResumable: true }
  const metrics = async (): Promise<Metric[]> => {
    const { stray, scans } = await store.paymentCounts(db)
    const nowMs = clock.now().getTime()
    return [
      gauge(
        'portico_credit_payments_stray',
        'Payments to the contracts for credits that pay no task and were not returned yet',
        stray.length === 0
          ? [{ labels: { reason: 'none' }, value: 0 }]
          : stray.map(({ reason, count }) => ({ labels: { reason }, value: count })),
      ),
      gauge(
        'portico_credit_payment_search_age_seconds',
        'Time since the payments of a chain were last searched to its newest final block',
        scans.map(({ chain_id, at }) => ({
          labels: { chain: chain_id },
          value: Math.max(0, (nowMs - at.getTime()) / 1_000),
        })),
      ),
    ]
  }
  return { kinds: [searchKind], schedules: [paymentSearchSchedule], metrics: { credit_payments: metrics } }
}

const earlier = (one: bigint, other: bigint): bigint => (one < other ? one : other)
type Paid = { token: string; amountUnits: bigint }
const isAboveDust =
  ({ native, tokens }: Till['chain']['row']) =>
  ({ token, amountUnits }: Paid): boolean => {
    const listed = tokens.find((each) => each.address.toLowerCase() === token.toLowerCase())
    return amountUnits >= dustUnits(listed ?? native, { isNative: listed === undefined })
  }

const searchTill = (deps: SearchDeps, till: Till): Promise<void> =>
  till.family === 'evm' ? searchContract(deps, till) : searchWallet(deps, till)

/** How many blocks or slots are searched again, because a node may know transactions that another did not list yet. */
const overlap = 300n
const withOverlap = (next: bigint): bigint => (next > overlap ? next - overlap : 0n)

async function searchWallet(
  { db, transact, clock }: SearchDeps,
  { chain, address, findTransfers }: SvmTill,
): Promise<void> {
  const { id: chainId, tokens } = chain.row
  const scan = await store.scanOf(db, chainId, address)
  const next = scan ? BigInt(scan.next_block) : 0n
  const { transfers, searchedTo } = await findTransfers({
    wallet: address,
    tokens: tokens.map((token) => token.address),
    fromSlot: withOverlap(next),
    isKnown: (signatures) => store.knownTransactions(db, chainId, signatures),
  })
  const found = transfers.map((transfer) => walletPayment(chainId, transfer)).filter(isAboveDust(chain.row))
  await transact(async (tx) => {
    await store.addFound(tx, found, clock.now())
    await store.saveScan(tx, { chainId, till: address, next: searchedTo, now: clock.now() })
  })
}

const taskIdPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function walletPayment(
  chainId: string,
  { signature, index, slot, payer, token, amountUnits, memo }: FoundTransfer,
): store.NewPayment {
  const facts = { chainId, txHash: signature, logIndex: index, block: slot, payer, token, amountUnits }
  if (index > 0) return { ...facts, taskId: null, state: 'stray', reason: 'token' }
  if (memo !== undefined && taskIdPattern.test(memo)) return { ...facts, taskId: memo, state: 'pending' }
  return { ...facts, taskId: null, state: 'stray', reason: memo === undefined ? 'no_task' : 'unknown_task' }
}

type Blocks = { from: bigint; to: bigint }

/** Returns the new blocks and some before them, for which the node that searched them may have lacked logs. */
export function blocksToSearch(
  next: bigint | undefined,
  final: bigint,
): { fresh: Blocks; repeated?: Blocks } {
  if (next === undefined)
    return { fresh: { from: final > firstBlocks ? final - firstBlocks : 0n, to: final } }
  const fresh = { from: next, to: final }
  return next > 0n ? { fresh, repeated: { from: withOverlap(next), to: next - 1n } } : { fresh }
}

async function searchContract(deps: SearchDeps, till: EvmTill): Promise<void> {
  const { db, transact, clock } = deps
  const { chain, address } = till
  const final = await chain.finalBlock()
  const scan = await store.scanOf(db, chain.row.id, address)
  const { fresh, repeated } = blocksToSearch(scan && BigInt(scan.next_block), final)
  const save = (on: Queryable, next: bigint) =>
    store.saveScan(on, { chainId: chain.row.id, till: address, next, now: clock.now() })
  if (fresh.from > final) return void (await save(db, fresh.from))
  const [{ found, searchedTo }, again] = await Promise.all([
    paymentsIn(deps, till, fresh),
    repeated ? paymentsIn(deps, till, repeated) : undefined,
  ])
  const all = [...found, ...(again?.found ?? [])]
  if (all.length === 0) return void (await save(db, searchedTo + 1n))
  await transact(async (tx) => {
    await store.addFound(tx, all, clock.now())
    await save(tx, searchedTo + 1n)
  })
}

async function paymentsIn(
  deps: SearchDeps,
  { chain, address }: EvmTill,
  blocks: Blocks,
): Promise<{ found: store.NewPayment[]; searchedTo: bigint }> {
  const { paymentsOf, paidTopics } = deps
  // Tokens beyond the verified list have no certain worth, and anybody could send any number of them.
  const listed = chain.row.tokens.map((token) => token.address)
  const [paid, sent] = await Promise.all([
    chain.logs({ address, topics: paidTopics }, blocks),
    chain.incomingTransfers(listed, address, blocks),
  ])
  const searchedTo = earlier(paid.searchedTo, sent.searchedTo)
  const isSearched = ({ block }: { block: bigint }) => block >= blocks.from && block <= searchedTo
  const isListed = ({ token, to }: IncomingTransfer) =>
    sameAddress(chain.row, to, address) && listed.some((each) => sameAddress(chain.row, each, token))
  const found = [
    ...paymentsOf(paid.logs, address)
      .filter(isSearched)
      .map((payment) => nativePayment(deps, chain.row.id, payment)),
    ...sent.transfers
      .filter(isSearched)
      .filter(isListed)
      .map((transfer) => tokenPayment(chain.row.id, transfer)),
  ].filter(isAboveDust(chain.row))
  return { found, searchedTo }
}

function nativePayment(
  { taskOfWord }: SearchDeps,
  chainId: string,
  { txHash, index, block, payer, amountUnits, task }: FoundPayment,
): store.NewPayment {
  const taskId = taskOfWord(task)
  const facts = { chainId, txHash, logIndex: index, block, payer, token: nativeSentinel, amountUnits }
  if (taskId !== undefined) return { ...facts, taskId, state: 'pending' }
  const isZero = /^0x0*$/.test(task)
  return { ...facts, taskId: null, state: 'stray', reason: isZero ? 'no_task' : 'unknown_task' }
}

const tokenPayment = (
  chainId: string,
  { txHash, index, block, from, token, amountUnits }: IncomingTransfer,
): store.NewPayment => ({
  chainId,
  txHash,
  logIndex: index,
  block,
  payer: from,
  token,
  amountUnits,
  taskId: null,
  state: 'stray',
  reason: 'token',
})

async function judgePending({ db, log }: SearchDeps): Promise<void> {
  for (const payment of await store.pendingPayments(db, rechargeKind, judgedMax)) {
    const { chain_id, tx_hash, payer, amount, task } = payment
    const seen = { chainId: chain_id, txHash: tx_hash, payer, amountUnits: BigInt(amount) }
    const verdict = judgePayment(
      seen,
      task
        ? {
            isLive: task.status === 'pending' || task.status === 'running',
            account: task.account,
            chainId: task.chain_id,
            amountUnits: BigInt(task.amount_units),
            txHash: task.tx_hash,
          }
        : undefined,
    )
    if (verdict === 'wait') continue
    const isSettled = await store.settlePending(db, payment, verdict)
    if (isSettled && verdict !== 'credited')
      log.error({ chain: chain_id, tx: tx_hash, reason: verdict }, 'payment for credits pays no task')
  }
}
