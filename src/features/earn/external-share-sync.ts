import type { Clock } from '#kernel/clock.ts'
import type { Asker } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import {
  type Admission,
  externalAccount,
  type Move,
  type StepResult,
  type TaskView,
  type Tx,
} from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import { addChange, earnAccountOf, raiseVersion, vaultRefOf } from './earn-account-store.ts'
import { positionAccount, shareAsset } from './ledger-accounts.ts'
import type { ReadSettled, SettledReading } from './settled-reading.ts'
import { externalOf } from './share-division.ts'
import { newestPosition } from './store.ts'

/** A sync books shares that were added or removed outside the gateway, so that positions and chain agree again. */

type SyncDeps = {
  db: Queryable
  vault: Vault
  readSettled: ReadSettled
  finalBlock: () => Promise<bigint>
  evmAddressOf: (userId: string) => Promise<string>
  clock: Clock
}
type SyncTaskData = { account: string }
type SyncTask = TaskView<SyncTaskData>
type External = { positionId: string; sharesUnits: bigint }

const deadlineMs = 120_000
const retryMs = 500

export const createEarnSync = (deps: SyncDeps) => ({
  admit: (_input: unknown, asker: Asker) => admit(deps, asker),
  steps: { compare: (task: SyncTask) => compare(deps, task) },
})

async function admit(
  { db, vault, evmAddressOf }: SyncDeps,
  { userId }: Asker,
): Promise<Admission<SyncTaskData, 'compare'>> {
  if (!(await earnAccountOf(db, userId, vaultRefOf(vault))))
    throw new Fault('no_position', 'The user has no positions to compare with the chain. Deposit first')
  return { first: 'compare', deadlineMs, data: { account: await evmAddressOf(userId) } }
}

async function externalFor(
  { db, vault }: SyncDeps,
  userId: string,
  { positionShares, onChainUnits }: SettledReading,
): Promise<External[]> {
  const external =
    positionShares.length > 0
      ? externalOf(
          positionShares.map(({ sharesUnits }) => sharesUnits),
          onChainUnits,
        ).map((sharesUnits, index) => ({ positionId: positionShares[index]!.positionId, sharesUnits }))
      : [
          {
            positionId: (await newestPosition(db, userId, vaultRefOf(vault)))?.id ?? '',
            sharesUnits: onChainUnits,
          },
        ]
  return external.filter(({ sharesUnits }) => sharesUnits !== 0n)
}

function moveOf(asset: string, task: SyncTask, { positionId, sharesUnits }: External): Move {
  const shareAccount = positionAccount(task.userId, asset, positionId)
  const isGain = sharesUnits > 0n
  return {
    move: 'transfer',
    key: `${task.id}:external:${positionId}`,
    debit: isGain ? externalAccount(asset) : shareAccount,
    credit: isGain ? shareAccount : externalAccount(asset),
    amountUnits: isGain ? sharesUnits : -sharesUnits,
    reason: 'earn_external',
  }
}

async function compare(deps: SyncDeps, task: SyncTask): Promise<StepResult<SyncTaskData, 'compare'>> {
  const { vault, clock } = deps
  const reading = await deps.readSettled(task.userId, task.data.account, { block: await deps.finalBlock() })
  if (!reading) return { park: { afterMs: retryMs, next: 'compare' }, state: 'waiting' }
  const external = await externalFor(deps, task.userId, reading)
  const gained = await Promise.all(
    external.map(async ({ sharesUnits }) => (sharesUnits > 0n ? vault.assetsOf(sharesUnits) : 0n)),
  )
  const writes = async (tx: Tx): Promise<void> => {
    if (external.length === 0) return
    // Another booking invalidates the reading, so the step runs again.
    if (!(await raiseVersion(tx, reading.account)))
      throw new Fault('unavailable', 'Another task changed the positions meanwhile. Try again')
    for (const [index, { positionId, sharesUnits }] of external.entries()) {
      const change = { positionId, sharesUnits, assetsUnits: gained[index]!, block: reading.block }
      const times = { createdAt: task.createdAt, now: clock.now() }
      await addChange(tx, task.userId, vaultRefOf(vault), { ...change, ...times })
    }
  }
  return {
    end: 'completed',
    outcome: 'executed',
    result: {
      block: Number(reading.block),
      shares: String(reading.onChainUnits),
      positions: external.map(({ positionId, sharesUnits }) => ({
        position_id: positionId,
        shares_delta: String(sharesUnits),
      })),
    },
    moves: external.map((each) => moveOf(shareAsset(vault), task, each)),
    writes,
  }
}
