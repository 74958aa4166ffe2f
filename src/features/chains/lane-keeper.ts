import type { Transact } from '#durable/transactions.ts'
import type { Log } from '#kernel/log.ts'
import { all, one, type Queryable, q, send } from '#store/query.ts'
import type { LaneCarrier, LanePlan } from '#upstreams/evm/nonce.ts'
import { type EvmPort, laneKind } from './batch.ts'

/** Holds the counters of the lanes against the chains, at start and every minute after. */

export type LaneReport = {
  chainId: string
  signer: string
  mined: bigint
  counter: bigint
  next: bigint
  resent: number
  filled: number
}

export type LaneKeeper = {
  /** Resends what was stored and is missing, fills gaps, moves counters to where the chain is. */
  reconcile(): Promise<LaneReport[]>
  start(everyMs?: number): AsyncDisposable
}

type Needs = {
  on: Queryable
  transact: Transact
  ports: ReadonlyMap<string, EvmPort>
  plan: (mined: bigint, counter: bigint, carriers: readonly LaneCarrier[]) => LanePlan
  log: Log
}

const everyMsDefault = 60_000

export function laneKeeper({ on, transact, ports, plan, log }: Needs): LaneKeeper {
  const counterOf = async (tx: Queryable, chain: string, signer: string, lock: boolean) => {
    let query = q.selectFrom('lane').select('next').where('kind', '=', laneKind)
    query = query.where('chain', '=', chain).where('signer', '=', signer)
    const row = await one(tx, lock ? query.forUpdate() : query)
    return row && BigInt(row.next)
  }

  const storedFrom = async (tx: Queryable, chain: string, signer: string, mined: bigint) => {
    const query = q
      .selectFrom('carrier')
      .select(['nonce', 'raw'])
      .where('lane_kind', '=', laneKind)
      .where('chain', '=', chain)
      .where('signer', '=', signer)
      .where('nonce', '>=', mined)
      .orderBy('nonce')
      .orderBy('n')
    return (await all(tx, query)).map(({ nonce, raw }) => ({ nonce: BigInt(nonce), raw }))
  }

  /** Under the lock of the lane nobody takes a number, and every number that was taken has its bytes in sight. */
  const settle = (chain: string, signer: string, mined: bigint): Promise<LanePlan | undefined> =>
    transact(async (tx) => {
      const counter = await counterOf(tx, chain, signer, true)
      if (counter === undefined) return undefined
      const made = plan(mined, counter, await storedFrom(tx, chain, signer, mined))
      if (made.next !== counter)
        await send(tx, 'update lane set next = $4 where kind = $1 and chain = $2 and signer = $3', [
          laneKind,
          chain,
          signer,
          made.next,
        ])
      return made
    })

  async function mend(port: EvmPort, signer: string): Promise<LaneReport | undefined> {
    const { chain, sponsor } = port
    const counter = await counterOf(on, chain.row.id, signer, false)
    if (counter === undefined) return undefined
    const mined = await chain.transactionCount(signer, 'latest')
    const report = { chainId: chain.row.id, signer, mined, counter }
    if (mined === counter) return { ...report, next: counter, resent: 0, filled: 0 }
    const made = await settle(chain.row.id, signer, mined)
    if (!made) return undefined
    const { next, resend, gaps } = made
    const filled = await Promise.all(gaps.map((nonce) => sponsor.fill(signer, nonce)))
    const inOrder = [...resend, ...filled].sort((a, b) => (a.nonce < b.nonce ? -1 : 1))
    for (const { raw } of inOrder) await chain.sendRaw(raw)
    return { ...report, next, resent: resend.length, filled: gaps.length }
  }

  async function reconcile(): Promise<LaneReport[]> {
    const lanes = [...ports.values()].flatMap((port) =>
      port.sponsor.signers.map((signer) => ({ port, signer })),
    )
    const reports = await Promise.all(
      lanes.map(({ port, signer }) =>
        mend(port, signer).catch((error: unknown) => {
          // A chain that is away is asked again in the next round.
          log.warn({ error, chain: port.chain.row.id, signer }, 'a lane could not be held against its chain')
          return undefined
        }),
      ),
    )
    return reports.filter((report) => report !== undefined)
  }

  return {
    reconcile,
    start(everyMs = everyMsDefault) {
      let round: Promise<unknown> = reconcile()
      const timer = setInterval(() => {
        round = round.then(reconcile)
      }, everyMs)
      timer.unref()
      return {
        async [Symbol.asyncDispose]() {
          clearInterval(timer)
          await round
        },
      }
    },
  }
}
