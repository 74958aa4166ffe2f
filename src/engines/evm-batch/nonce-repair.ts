import type { ChainComparison } from '#durable/time/detect-lost-commits.ts'
import type { Transact } from '#durable/transactions.ts'
import { startPacedJob } from '#kernel/async/paced-job.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { AbandonedAttempt, NonceRepairPlan, StoredAttempt } from '#upstreams/evm/nonce-repair-plan.ts'
import type { Broadcasts } from './broadcasts.ts'
import type { EvmPort } from './evm-chain-parts.ts'
import { createChainComparison } from './nonce-comparison.ts'
import { counterKey, readCounters } from './nonce-counters.ts'
import { nonceKind } from './sponsor-load.ts'
import { holdChain, readUnknownNonces, type UnknownNonces, type UnknownNoncesDeps } from './unknown-nonces.ts'

/** Reconciles the sponsors' nonce counters with the chains at start, each minute, and each second while sends fail. */

export type NonceReport = {
  chainId: string
  signer: string
  mined: bigint
  counter: bigint
  next: bigint
  resent: number
  filled: number
  /** How many nonces of ended effects got an empty transaction with higher fees. */
  replaced: number
  /** The finding about nonces that were mined above the counter, if there were any. */
  unknown?: UnknownNonces['found']
}

export type NonceRepair = {
  /**
   * Resends stored transactions that are missing, fills nonce gaps, replaces transactions of ended tasks that
   * block later ones, and advances counters to the chain's nonce.
   */
  reconcile(chainId?: string): Promise<NonceReport[]>
  /** Compares all chains and changes nothing. `point` is the last moment of which the database has a record. */
  compare(point: Date | null): Promise<ChainComparison[]>
  start(everyMs?: number): AsyncDisposable
}

/** A round of repairs; a quick one only sends the transactions that the node does not have. */
type Round = { isQuick: boolean }

type NonceRepairDeps = {
  db: Queryable
  transact: Transact
  ports: ReadonlyMap<string, EvmPort>
  plan: (mined: bigint, counter: bigint, attempts: readonly StoredAttempt[]) => NonceRepairPlan
  abandoned: (
    open: { mined: bigint; resend: readonly StoredAttempt[] },
    options: { now: Date; stuckAfterMs: number },
  ) => AbandonedAttempt[]
  clock: Clock
  log: Log
} & UnknownNoncesDeps

const everyMsDefault = 60_000
const quickEveryMs = 1_000
/** The most transactions of a signer sent at once, after a first one that shows whether the node takes any. */
const sendsMax = 20

async function storedAttempts(tx: Queryable, chain: string, signer: string, mined: bigint) {
  const statement = builder
    .selectFrom('tx_attempt as a')
    .innerJoin('effect as e', 'e.id', 'a.effect_id')
    .select(['a.nonce', 'a.raw', 'a.effect_id', 'a.n', 'a.at', 'e.status'])
    .where('a.nonce_kind', '=', nonceKind)
    .where('a.chain', '=', chain)
    .where('a.signer', '=', signer)
    .where('a.nonce', '>=', mined)
    .orderBy('a.nonce')
    .orderBy('a.n')
  return (await fetchAll(tx, statement)).map(({ nonce, raw, effect_id, n, at, status }) => ({
    nonce: BigInt(nonce),
    raw,
    effectId: effect_id,
    n,
    isFinal: status === 'dropped' || status === 'rejected',
    storedAt: at,
  }))
}

export function createNonceRepair(deps: NonceRepairDeps): NonceRepair {
  const { db, transact, ports, plan, log } = deps
  const lockCounter = async (tx: Queryable, chain: string, signer: string) => {
    const statement = builder.selectFrom('nonce_sequence').select('next').where('kind', '=', nonceKind)
    const row = await fetchOne(
      tx,
      statement.where('chain', '=', chain).where('signer', '=', signer).forUpdate(),
    )
    return row && BigInt(row.next)
  }

  /**
   * Locks a nonce counter and moves it as the repair plan says. While the lock is held, no nonce is taken, and every
   * nonce that was taken before has its stored transaction.
   */
  const reconcileCounter = (
    chain: string,
    signer: string,
    mined: bigint,
    { skipsUnknown }: { skipsUnknown: boolean },
  ): Promise<NonceRepairPlan | undefined> =>
    transact(async (tx) => {
      const counter = await lockCounter(tx, chain, signer)
      if (counter === undefined) return undefined
      const repairPlan = plan(mined, counter, await storedAttempts(tx, chain, signer, mined))
      if (repairPlan.next !== counter && (!repairPlan.unknown || skipsUnknown))
        await query(
          tx,
          'update nonce_sequence set next = $4 where kind = $1 and chain = $2 and signer = $3',
          [nonceKind, chain, signer, repairPlan.next],
        )
      return repairPlan
    })

  type Counter = { port: EvmPort; signer: string; counter: bigint }

  async function repair(
    { port, signer, counter }: Counter,
    { isQuick }: Round,
  ): Promise<NonceReport | undefined> {
    const { chain, sponsor } = port
    const [mined, known] = await Promise.all([
      chain.transactionCount(signer, 'latest'),
      isQuick ? chain.transactionCount(signer, 'pending') : 0n,
    ])
    const report = { chainId: chain.row.id, signer, mined, counter }
    const unchanged = { ...report, next: counter, resent: 0, filled: 0, replaced: 0 }
    if (mined === counter) return unchanged
    // While the chain's money is on hold, a nonce that is missing on the chain may be missing in the database too, so
    // nothing is signed or sent.
    if (deps.holds.find(chain.row.id)) return unchanged
    let repairPlan = await reconcileCounter(chain.row.id, signer, mined, { skipsUnknown: false })
    if (repairPlan?.unknown) {
      const unknown = await readUnknownNonces(deps, { port, signer, ...repairPlan.unknown })
      if (unknown.found === 'lost') {
        await holdChain(deps, port, unknown.detail)
        return { ...unchanged, unknown: 'lost' }
      }
      repairPlan = await reconcileCounter(chain.row.id, signer, mined, { skipsUnknown: true })
    }
    if (!repairPlan) return undefined
    const { next, resend, gaps } = repairPlan
    const replaced = await replaceAbandoned(deps, { port, signer, mined, resend })
    const filled = await Promise.all(gaps.map((nonce) => sponsor.fillNonce(signer, nonce)))
    const newest = resend
      .filter(({ nonce }) => nonce >= known || replaced.has(nonce))
      .map(({ nonce, raw }) => ({ nonce, raw: replaced.get(nonce) ?? raw }))
    const inOrder = [...newest, ...filled].sort((a, b) => (a.nonce < b.nonce ? -1 : 1))
    await sendAll(port, inOrder, { isQuick })
    return { ...report, next, resent: resend.length, filled: gaps.length, replaced: replaced.size }
  }

  const compareChain = createChainComparison(deps)

  async function countersOf(only: readonly EvmPort[]): Promise<Counter[]> {
    const counters = await readCounters(db, only)
    return only.flatMap((port) =>
      port.sponsor.signers.flatMap((signer) => {
        const counter = counters.get(counterKey(port.chain.row.id, signer))
        return counter === undefined ? [] : [{ port, signer, counter }]
      }),
    )
  }

  async function reconcile(only: readonly EvmPort[], round: Round): Promise<(NonceReport | undefined)[]> {
    return Promise.all(
      (await countersOf(only)).map((each) =>
        repair(each, round).catch((error: unknown) => {
          const { port, signer } = each
          log.warn({ error, chain: port.chain.row.id, signer }, 'nonce counter not reconciled: will retry')
          return undefined
        }),
      ),
    )
  }

  return {
    async reconcile(chainId) {
      const only = [...ports.values()].filter(
        ({ chain }) => chainId === undefined || chain.row.id === chainId,
      )
      const reports = await reconcile(only, { isQuick: false })
      return reports.filter((report) => report !== undefined)
    },
    compare: (point) => Promise.all([...ports.values()].map((port) => compareChain(port, point))),
    start(everyMs = everyMsDefault) {
      const parts = new AsyncDisposableStack()
      for (const port of ports.values())
        parts.use(
          startRounds(port.broadcasts, {
            everyMs,
            log,
            run: (round) => reconcile([port], round),
          }),
        )
      return parts
    },
  }
}

/** Sends transactions, the first one alone; a quick round ends if the node does not take that one. */
async function sendAll(
  { broadcasts }: EvmPort,
  inOrder: readonly { raw: string }[],
  { isQuick }: Round,
): Promise<void> {
  for (let at = 0, count = 1; at < inOrder.length; at += count, count = sendsMax) {
    await Promise.all(inOrder.slice(at, at + count).map(({ raw }) => broadcasts.send(raw)))
    if (isQuick && broadcasts.isFailing()) return
  }
}

type RoundsOptions = {
  everyMs: number
  log: Log
  run: (round: Round) => Promise<(NonceReport | undefined)[]>
}

/** Starts the rounds of one chain. Quick ones are at least a second apart, however often broadcasts fail. */
function startRounds(broadcasts: Broadcasts, { everyMs, log, run }: RoundsOptions): AsyncDisposable {
  const parts = new AsyncDisposableStack()
  let startedMs = monotonicMs()
  let fullAtMs = startedMs
  const job = parts.use(
    startPacedJob(
      async () => {
        startedMs = monotonicMs()
        const isQuick = startedMs < fullAtMs
        if (!isQuick) fullAtMs = startedMs + everyMs
        const isOpen = (await run({ isQuick })).some((report) => !report || report.mined !== report.counter)
        return isOpen && broadcasts.isFailing() ? quickEveryMs : Math.max(0, fullAtMs - monotonicMs())
      },
      {
        retryMs: quickEveryMs,
        onError: (error) => log.warn({ error }, 'nonce counters not read: will retry'),
      },
    ),
  )
  parts.use(broadcasts.onChange(() => job.runWithin(Math.max(0, startedMs + quickEveryMs - monotonicMs()))))
  return parts
}

type OpenSequence = { port: EvmPort; signer: string; mined: bigint; resend: readonly StoredAttempt[] }

/** Replaces ended tasks' transactions. Returns the bytes that this instance stored: only these may be sent. */
async function replaceAbandoned(
  { db, abandoned, clock, log }: NonceRepairDeps,
  { port, signer, ...open }: OpenSequence,
): Promise<Map<bigint, string>> {
  const { chain, sponsor } = port
  const now = clock.now()
  const found = abandoned(open, { now, stuckAfterMs: chain.row.stuckAfterMs })
  if (found.length === 0) return new Map()
  const byNonce = new Map(found.map((attempt) => [attempt.nonce, attempt]))
  const signed = await sponsor.replaceAbandoned(signer, found)
  if (signed.length === 0) return new Map()
  // The attempt number decides between two instances: the second one stores nothing, and never sends its bytes.
  const stored = await query<{ nonce: string | bigint; raw: string }>(
    db,
    `insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
     select e.id, (select max(n) + 1 from tx_attempt a where a.effect_id = e.id), x.raw, x.external_id, $6, $7, $8, x.nonce,
       'sent', $9
     from unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::bigint[]) as x (effect_id, n, raw, external_id, nonce)
     join effect e on e.id = x.effect_id and e.status in ('dropped', 'rejected')
     where not exists (select from tx_attempt a where a.effect_id = e.id and a.nonce = x.nonce and a.n > x.n)
     on conflict do nothing returning nonce, raw`,
    [
      signed.map(({ nonce }) => byNonce.get(nonce)!.effectId),
      signed.map(({ nonce }) => byNonce.get(nonce)!.n),
      signed.map(({ raw }) => raw),
      signed.map(({ externalId }) => externalId),
      signed.map(({ nonce }) => nonce),
      nonceKind,
      chain.row.id,
      signer,
      now,
    ],
  )
  if (stored.length > 0)
    log.info(
      { chain: chain.row.id, signer, count: stored.length },
      'transactions of ended tasks were replaced by empty ones',
    )
  return new Map(stored.map(({ nonce, raw }) => [BigInt(nonce), raw]))
}
