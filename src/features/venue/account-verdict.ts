import type { Events } from '#durable/events.ts'
import type { Transact } from '#durable/transactions.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Drift, Look } from './account-look.ts'
import * as store from './account-store.ts'
import { isPosition } from './agreement.ts'
import * as record from './record-store.ts'

/** What a look at an account means: nothing, a suspicion, or that nothing is opened there any more. */

export type VerdictNeeds = {
  on: Queryable
  transact: Transact
  events: Pick<Events, 'add' | 'told'>
  freeze: (tx: Tx, userId: string, reason: string) => Promise<void>
  thaw: (tx: Tx, userId: string) => Promise<void>
  /** Whether a difference in cash or tokens alone freezes, or is only told. */
  balancesFreeze: boolean
  clock: Clock
  log: Log
  settleMs: number
  /** When an account is due again that shows nothing remarkable. */
  nextAfter: (account: store.VenueAccount, now: Date) => Date
  drifted: () => void
}

const flagged = ({ account }: store.VenueAccount, data: Record<string, string | null>) => ({
  type: 'security.flagged',
  subject: { kind: 'account', id: account },
  data,
})

export async function freezeAccount(
  needs: VerdictNeeds,
  account: store.VenueAccount,
  { code, reason }: Drift,
) {
  const { transact, events, clock, log } = needs
  const now = clock.now()
  const told = await transact(async (tx) => {
    const [first] = await store.markFrozen(tx, account, reason, now)
    if (!first) return false
    await needs.freeze(tx, account.user_id, reason)
    const data = { venue: account.venue, state: 'frozen', code, reason, since: now.toISOString() }
    await events.add(tx, account.user_id, [flagged(account, data)])
    return true
  })
  if (!told) return
  needs.drifted()
  events.told(account.user_id)
  log.error({ userId: account.user_id, code, reason }, 'an account at the venue was frozen')
}

/** What an account held before its record began is written down as such. */
async function opened(
  { transact, log }: VerdictNeeds,
  account: store.VenueAccount,
  { found, atMs }: Extract<Look, { is: 'apart' }>,
): Promise<boolean> {
  if (found.length === 0) return false
  const reason = 'held before the record began'
  await transact((tx) => record.adjust(tx, account, found, { kind: 'opening', reason, atMs }))
  log.warn(
    { userId: account.user_id, found },
    'an account at the venue held something before its record began',
  )
  return true
}

/** A change that the venue tells without saying what it changed is taken over, with its reason. */
async function adjusted(
  { on, transact, log }: VerdictNeeds,
  account: store.VenueAccount,
  { found, atMs }: Extract<Look, { is: 'apart' }>,
): Promise<boolean> {
  if (found.length === 0 || found.some(isPosition)) return false
  const kinds = await record.unexplainedSince(on, account)
  if (kinds.length === 0) return false
  const reason = kinds.join(', ')
  await transact((tx) => record.adjust(tx, account, found, { kind: 'adjustment', reason, atMs }))
  log.warn({ userId: account.user_id, reason, found }, 'a balance at the venue was adjusted')
  return true
}

async function thaw(needs: VerdictNeeds, account: store.VenueAccount) {
  const { transact, events, log } = needs
  const { user_id: userId, lifted_by: by } = account
  await transact(async (tx) => {
    await needs.thaw(tx, userId)
    await events.add(tx, userId, [flagged(account, { venue: account.venue, state: 'lifted', lifted_by: by })])
  })
  events.told(userId)
  log.warn({ userId, by }, 'an account at the venue is no longer frozen')
}

/** Writes down what was seen, and when the next look is due. */
export async function settleLook(
  needs: VerdictNeeds,
  account: store.VenueAccount,
  seen: Look,
): Promise<void> {
  const { on, clock, log, settleMs } = needs
  const now = clock.now()
  const soon = later(now, settleMs)
  const agreedMs = account.agreed_ms
  const calm = { suspicion: null, suspectedAt: null, now, nextAt: needs.nextAfter(account, now) }
  if (seen.is === 'blurred') {
    await store.lookAgainAt(on, account, soon)
    return
  }
  if (seen.is === 'agreed') {
    if (account.state === 'lifting') await thaw(needs, account)
    if (account.state === 'new') await store.activate(on, account)
    await store.noteLook(on, account, { ...calm, agreedMs: seen.atMs })
    return
  }
  if (seen.is === 'certain') {
    await freezeAccount(needs, account, seen.drift)
    await store.noteLook(on, account, { ...calm, agreedMs })
    return
  }
  const { reason, code } = seen.drift
  const suspectedAt = account.suspicion === reason ? (account.suspected_at ?? now) : now
  const suspected = { suspicion: reason, suspectedAt, agreedMs, now }
  const lasts = now.getTime() - suspectedAt.getTime() >= settleMs
  const explain = account.state === 'new' ? opened : adjusted
  if (!lasts || (await explain(needs, account, seen))) {
    await store.noteLook(on, account, { ...suspected, nextAt: soon })
    return
  }
  if (code !== 'balance' || needs.balancesFreeze) await freezeAccount(needs, account, seen.drift)
  else log.error({ userId: account.user_id, reason }, 'balances at the venue differ from their record')
  await store.noteLook(on, account, { ...suspected, nextAt: calm.nextAt })
}
