import { assertEstablished, assertUncontested, type Subject, subjectOf } from '#engines/agent-links/owners.ts'
import { assertScope } from '#kernel/contract/assert-scope.ts'
import { type ActScope, type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { conflict, type Fault } from '#kernel/contract/fault.ts'
import { confirmedAct, type InputOf } from '#kernel/contract/operation.ts'
import { gauge, type Metric } from '#kernel/metrics.ts'
import type { RequestedAct } from '#kernel/task/act-approval-request.ts'
import { approvalDetail } from '#kernel/task/approval.ts'
import { isOperatorText } from '#kernel/task/operator-text.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import { change, type OperationsDeps } from './apply-and-publish-change.ts'
import type { contract } from './contract.ts'
import { resumedText, whose } from './person-mail-texts.ts'
import * as store from './store.ts'

type KillInput = InputOf<(typeof contract)['entries']['kill']>
/** Shows the kill switch of a user; `since` is null if the switch is off. */
const switchView = (since: Date | null) => ({
  on: since !== null,
  scope: 'user' as const,
  since: since?.toISOString() ?? null,
})

const stoppedByOperator = (): Fault =>
  conflict(
    'The operator has stopped trading for this user: only the operator ends it',
    'stopped by the operator',
  )

/**
 * Any caller sets the kill switch at once, and a person confirms that it is lifted. A switch that the operator has set
 * is lifted only by the operator.
 */
export const createKill = (deps: OperationsDeps) =>
  confirmedAct(
    (input: KillInput, caller: Caller, facts: RequestFacts) => kill(deps, input, caller, facts),
    async (input, person) => (scope) => lift(deps, input as LiftInput, person, scope),
  )

const idOf = ({ userId }: Subject) => ({ scope: 'user' as const, userId })

/** Returns the user's switch, undefined if it is off; throws if the person may not lift it, or not yet. */
async function findLiftable({ clock, coolingMs }: OperationsDeps, tx: Tx, by: string, subject: Subject) {
  const set = await store.switchesOf(tx, idOf(subject))
  const ofOperator = set.filter((each) => isOperatorText(each.set_by))
  const ofUsers = set.filter((each) => !isOperatorText(each.set_by))
  if (set.length === 0) return undefined
  if (ofUsers.length === 0) throw stoppedByOperator()
  if (ofUsers.some(({ set_by: setBy }) => setBy !== by))
    assertEstablished(
      subject.linkedAt,
      { now: clock.now(), coolingMs },
      (until) => `until ${until} its trading can be allowed again only where nobody but you has stopped it`,
    )
  const times = ofUsers.map(({ pressed_at: pressedAt }) => pressedAt)
  return {
    setBy: ofUsers.map((each) => each.set_by),
    lastSetAt: times.reduce((last, at) => (at > last ? at : last)),
    /** Since when the operator's switch stops the user; it stays on when the user's own switch is lifted. */
    operatorSince: ofOperator[0]?.since ?? null,
  }
}

async function stop(tx: Tx, setBy: string, { now, subject }: { now: Date; subject: Subject }) {
  const before = await store.switchesOf(tx, idOf(subject))
  await store.setSwitch(tx, idOf(subject), { since: now, setBy })
  const isNew = before.every(({ set_by: known }) => known !== setBy)
  return {
    answer: switchView(before[0]?.since ?? now),
    changed: isNew ? [{ cause: 'paused' as const }] : [],
  }
}

async function kill(
  deps: OperationsDeps,
  { on, for_agent: forAgent }: KillInput,
  caller: Caller,
  facts: RequestFacts,
): Promise<ReturnType<typeof switchView> | RequestedAct> {
  const scope = toActScope(facts)
  const { tx } = scope
  const by = { caller, forAgent }
  if (on) return change(deps, by, scope, (_tx, now, subject) => stop(tx, caller.agentId, { now, subject }))
  const subject = await subjectOf(tx, caller, forAgent, { lock: true })
  const found = await findLiftable(deps, tx, caller.agentId, subject)
  if (!found) return switchView(null)
  assertScope(caller, 'propose')
  const act = {
    operation: 'policy_kill',
    input: { for_agent: subject.agentId, on: false, since: found.lastSetAt.toISOString() },
    text: `Allow trading again for ${whose(subject, caller)}`,
    details: [approvalDetail('Kill switch', 'is lifted: trading goes on within the limits')],
  }
  return deps.acts.requestAct(scope, act, caller)
}

type LiftInput = KillInput & { since?: string }

const lift = (
  deps: OperationsDeps,
  { for_agent: forAgent, since }: LiftInput,
  person: Caller,
  scope: ActScope,
) =>
  change(deps, { caller: person, forAgent }, scope, async (tx, _now, subject) => {
    assertUncontested(subject.contestedAt)
    const found = await findLiftable(deps, tx, person.agentId, subject)
    if (!found) return { answer: switchView(null), changed: [] }
    if (since !== undefined && found.lastSetAt.toISOString() !== since)
      throw conflict(
        'Trading was stopped again since its end was asked for: ask for it again',
        'the switch was set again',
      )
    for (const setBy of found.setBy) await store.clearSwitch(tx, idOf(subject), { setBy })
    const answer = switchView(found.operatorSince)
    if (answer.on) return { answer, changed: [] }
    return {
      answer,
      changed: [{ cause: 'resumed' }],
      mail: { kind: 'trading_resumed', text: resumedText(subject) },
    }
  })

export const killSwitchMetrics = (db: Queryable) => async (): Promise<Metric[]> => [
  gauge(
    'portico_kill_switch_on',
    'The kill switch of the operator stops what opens or spends, for all users',
    (await store.readStoppedSince(db)) === null ? 0 : 1,
  ),
]
