import type { Transact } from '#durable/transactions.ts'
import type { Log } from '#kernel/log.ts'
import { repeat } from '#kernel/repeat.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import type { NonceRepairPlan, StoredAttempt } from '#upstreams/evm/nonce-repair-plan.ts'
import type { EvmPort } from './evm-port.ts'
import { nonceKind } from './sponsor-load.ts'

/** Reconciles the nonce counters of the sponsors with the chains, at start and every minute after. */

export type NonceReport = {
  chainId: string
  signer: string
  mined: bigint
  counter: bigint
  next: bigint
  resent: number
  filled: number
}

export type NonceRepair = {
  /** Resends stored transactions that are missing, fills nonce gaps, and advances counters to the chain's nonce. */
  reconcile(): Promise<NonceReport[]>
  start(everyMs?: number): AsyncDisposable
}

type NonceRepairDeps = {
  db: Queryable
  transact: Transact
  ports: ReadonlyMap<string, EvmPort>
  plan: (mined: bigint, counter: bigint, attempts: readonly StoredAttempt[]) => NonceRepairPlan
  log: Log
}

const everyMsDefault = 60_000

const counterKey = (chain: string, signer: string): string => `${chain} ${signer}`

export function createNonceRepair({ db, transact, ports, plan, log }: NonceRepairDeps): NonceRepair {
  /** One statement for all chains; by chain and signer. */
  const readCounters = async (): Promise<Map<string, bigint>> => {
    const statement = builder
      .selectFrom('nonce_sequence')
      .select(['chain', 'signer', 'next'])
      .where('kind', '=', nonceKind)
      .where('chain', '=', (eb) => eb.fn.any(eb.val([...ports.keys()])))
    const rows = await fetchAll(db, statement)
    return new Map(rows.map(({ chain, signer, next }) => [counterKey(chain, signer), BigInt(next)]))
  }

  const lockCounter = async (tx: Queryable, chain: string, signer: string) => {
    const statement = builder.selectFrom('nonce_sequence').select('next').where('kind', '=', nonceKind)
    const row = await fetchOne(
      tx,
      statement.where('chain', '=', chain).where('signer', '=', signer).forUpdate(),
    )
    return row && BigInt(row.next)
  }

  const storedAttempts = async (tx: Queryable, chain: string, signer: string, mined: bigint) => {
    const statement = builder
      .selectFrom('tx_attempt')
      .select(['nonce', 'raw'])
      .where('nonce_kind', '=', nonceKind)
      .where('chain', '=', chain)
      .where('signer', '=', signer)
      .where('nonce', '>=', mined)
      .orderBy('nonce')
      .orderBy('n')
    return (await fetchAll(tx, statement)).map(({ nonce, raw }) => ({ nonce: BigInt(nonce), raw }))
  }

  /** While the counter's row is locked no nonce is taken, and every nonce that was taken has its stored bytes. */
  const reconcileCounter = (
    chain: string,
    signer: string,
    mined: bigint,
  ): Promise<NonceRepairPlan | undefined> =>
    transact(async (tx) => {
      const counter = await lockCounter(tx, chain, signer)
      if (counter === undefined) return undefined
      const repairPlan = plan(mined, counter, await storedAttempts(tx, chain, signer, mined))
      if (repairPlan.next !== counter)
        await query(
          tx,
          'update nonce_sequence set next = $4 where kind = $1 and chain = $2 and signer = $3',
          [nonceKind, chain, signer, repairPlan.next],
        )
      return repairPlan
    })

  async function repair(port: EvmPort, signer: string, counter: bigint): Promise<NonceReport | undefined> {
    const { chain, sponsor } = port
    const mined = await chain.transactionCount(signer, 'latest')
    const report = { chainId: chain.row.id, signer, mined, counter }
    if (mined === counter) return { ...report, next: counter, resent: 0, filled: 0 }
    const repairPlan = await reconcileCounter(chain.row.id, signer, mined)
    if (!repairPlan) return undefined
    const { next, resend, gaps } = repairPlan
    const filled = await Promise.all(gaps.map((nonce) => sponsor.fillNonce(signer, nonce)))
    const inOrder = [...resend, ...filled].sort((a, b) => (a.nonce < b.nonce ? -1 : 1))
    for (const { raw } of inOrder) await chain.sendRaw(raw)
    return { ...report, next, resent: resend.length, filled: gaps.length }
  }

  async function reconcile(): Promise<NonceReport[]> {
    const counters = await readCounters()
    const known = [...ports.values()].flatMap((port) =>
      port.sponsor.signers.flatMap((signer) => {
        const counter = counters.get(counterKey(port.chain.row.id, signer))
        return counter === undefined ? [] : [{ port, signer, counter }]
      }),
    )
    const reports = await Promise.all(
      known.map(({ port, signer, counter }) =>
        repair(port, signer, counter).catch((error: unknown) => {
          // The next round retries.
          log.warn({ error, chain: port.chain.row.id, signer }, 'nonce counter not reconciled: will retry')
          return undefined
        }),
      ),
    )
    return reports.filter((report) => report !== undefined)
  }

  return {
    reconcile,
    start: (everyMs = everyMsDefault) =>
      repeat(reconcile, {
        everyMs,
        immediately: true,
        onError: (error) => log.warn({ error }, 'nonce counters not read: will retry'),
      }),
  }
}
