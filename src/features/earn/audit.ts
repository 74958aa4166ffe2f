import type { EventLog } from '#durable/events/event-log.ts'
import type { Transact } from '#durable/transactions.ts'
import type { NewSchedule } from '#durable/upkeep/scheduler.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import { counter, gauge, type Metric } from '#kernel/metrics.ts'
import type { StepResult, TaskKind } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import * as store from './earn-account-store.ts'
import type { ReadSettled } from './settled-reading.ts'

/** This module compares every user's positions with the vault, and freezes deposits if shares are missing. */

type AuditDeps = {
  db: Queryable
  transact: Transact
  events: Pick<EventLog, 'add' | 'notify'>
  vault: Vault
  readSettled: ReadSettled
  finalBlock: () => Promise<bigint>
  evmAddressOf: (userId: string) => Promise<string>
  clock: Clock
  log: Log
}

const kind = 'earn_audit'
/** The id of the audit is fixed, so that all instances share one schedule. */
const id = '00000000-0000-7000-8000-00000000ea13'
const everySeconds = 20
const batchMax = 20
/** A deficit of shares freezes the account once it has been unchanged for this long. */
const confirmMs = 5_000
const recheckMs = 300_000
const auditor = 'audit'

export const auditSchedule = (now: Date): NewSchedule => ({
  id,
  kind,
  input: {},
  everySeconds,
  firstAt: now,
})

export function createEarnAudit(given: AuditDeps) {
  const counts = { compared: 0, failed: 0, mismatches: 0 }
  const deps = { ...given, vaultRef: store.vaultRefOf(given.vault), counts }
  const auditKind: TaskKind = {
    kind,
    version: 1,
    priority: 2,
    steps: { compare: (_task, { signal }) => compareDue(deps, signal) },
  }
  const metrics = async (): Promise<Metric[]> => [
    gauge(
      'portico_earn_accounts_frozen',
      'Users whose deposits into the vault are frozen, of all instances',
      await store.frozenCount(deps.db, deps.vaultRef),
    ),
    counter(
      'portico_earn_reconciliations_total',
      'Comparisons of the positions of a user with the vault',
      counts.compared,
    ),
    counter(
      'portico_earn_reconciliation_failures_total',
      'Comparisons that failed because the chain did not answer',
      counts.failed,
    ),
    counter(
      'portico_earn_account_freezes_total',
      'Users whose deposits this instance froze because shares are missing',
      counts.mismatches,
    ),
  ]
  return { kind: auditKind, metrics }
}

type CompareDeps = AuditDeps & {
  vaultRef: store.VaultRef
  counts: Record<'compared' | 'failed' | 'mismatches', number>
}
type Audited = { userId: string; address: string }

const setAccountState = (
  { transact, events, vault, vaultRef, clock }: CompareDeps,
  { userId, address }: Audited,
  data: Record<string, string | null>,
): Promise<boolean> =>
  transact(async (tx) => {
    const now = clock.now()
    const { state, reason } = data
    const isChanged =
      state === 'frozen'
        ? await store.freezeEarnAccount(tx, userId, vaultRef, { reason: reason ?? '', by: auditor, now })
        : await store.unfreezeEarnAccount(tx, userId, vaultRef, auditor)
    if (!isChanged) return false
    const subject = { kind: 'account', id: address }
    const eventData = { chain_id: vault.chainId, vault_address: vault.address, ...data }
    await events.add(tx, userId, [{ type: 'security.flagged', subject, data: eventData }])
    return true
  })

async function freeze(deps: CompareDeps, audited: Audited, missing: bigint): Promise<void> {
  const reason = `the positions have ${missing} more shares than the account holds on the chain`
  const code = 'earn_shares_missing'
  if (!(await setAccountState(deps, audited, { state: 'frozen', code, reason }))) return
  const { userId } = audited
  deps.counts.mismatches += 1
  deps.events.notify(userId)
  deps.log.error({ userId, code, reason }, 'earn account frozen: deposits into the vault are refused')
}

async function unfreeze(deps: CompareDeps, audited: Audited): Promise<void> {
  if (!(await setAccountState(deps, audited, { state: 'active', unfrozen_by: auditor }))) return
  const { userId } = audited
  deps.events.notify(userId)
  deps.log.warn({ userId }, 'earn account unfrozen: positions and chain agree again')
}

async function compare(deps: CompareDeps, account: store.EarnAccount, block: bigint): Promise<void> {
  const { db, readSettled, clock, counts } = deps
  const { user_id: userId } = account
  const address = await deps.evmAddressOf(userId)
  const reading = await readSettled(userId, address, { block })
  const now = clock.now()
  if (!reading) return void (await store.compareAgainAt(db, account, later(now, confirmMs)))
  counts.compared += 1
  const booked = reading.positionShares.reduce((sum, { sharesUnits }) => sum + sharesUnits, 0n)
  const difference = reading.onChainUnits - booked
  const comparison = { mismatch: difference === 0n ? null : difference, now }
  // Any account can send shares to another, so a surplus does not freeze the account; the positions show it.
  if (difference >= 0n) {
    if (account.state === 'frozen' && account.frozen_by === auditor) await unfreeze(deps, { userId, address })
    const nextAt = later(now, recheckMs)
    return void (await store.noteComparison(db, reading.account, { ...comparison, since: null, nextAt }))
  }
  const isSame = account.mismatch !== null && BigInt(account.mismatch) === difference
  const since = isSame ? (account.mismatch_since ?? now) : now
  const isLasting = now.getTime() - since.getTime() >= confirmMs
  if (isLasting) await freeze(deps, { userId, address }, -difference)
  const nextAt = later(now, isLasting ? recheckMs : confirmMs)
  await store.noteComparison(db, reading.account, { ...comparison, since, nextAt })
}

async function compareDue(deps: CompareDeps, signal: AbortSignal): Promise<StepResult> {
  const { db, vaultRef, clock, counts } = deps
  const block = await deps.finalBlock()
  const due = await store.dueAccounts(db, vaultRef, clock.now(), batchMax)
  for (const account of due) {
    if (signal.aborted) break
    try {
      await compare(deps, account, block)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      counts.failed += 1
      await store.compareAgainAt(db, account, later(clock.now(), confirmMs * 2))
    }
  }
  return { end: 'completed', outcome: 'executed', result: { compared: due.length } }
}
