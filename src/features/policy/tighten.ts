import { assertUncontested, linkCoolsUntil, type Subject } from '#engines/agent-links/owners.ts'
import { later } from '#kernel/clock.ts'
import { assertScope } from '#kernel/contract/assert-scope.ts'
import { type ActScope, type Caller, type RequestFacts, toActScope } from '#kernel/contract/caller.ts'
import { conflict } from '#kernel/contract/fault.ts'
import { confirmedAct } from '#kernel/contract/operation.ts'
import { uuidv7 } from '#kernel/id.ts'
import type { ActRequest, RequestedAct } from '#kernel/task/act-approval-request.ts'
import type { Tx } from '#kernel/task/task.ts'
import { canonicalJson, type JsonObject } from '#kernel/wire/json.ts'
import { type Changed, change, type OperationsDeps } from './apply-and-publish-change.ts'
import { raiseDetails, raisedText, whose } from './person-mail-texts.ts'
import { assertWithinPlatform, wantedOf } from './policy-input.ts'
import { basisOf, fieldNames, policyView, type TightenInput, type View } from './policy-view.ts'
import * as rules from './rules.ts'
import * as store from './store.ts'

const mailOfRaised = (effectiveAt: Date, raised: readonly unknown[], text: () => string) =>
  raised.length > 0 ? { kind: 'limits_raised' as const, text: text(), effectiveAt } : undefined

const confirmationOf = ({ task_id, approval, message }: RequestedAct) => ({
  task_id,
  ...approval,
  message,
})

/**
 * A person confirms a raise of the limits that the page shows, so it fails if these limits have changed since.
 * Otherwise it could restore an entry that another change has removed from a list.
 */
function assertSameBasis(asked: JsonObject | undefined, now: JsonObject): void {
  if (asked === undefined || canonicalJson(asked) === canonicalJson(now)) return
  throw conflict(
    'These limits have changed since the raise was asked for: ask for it again',
    'the limits were changed meanwhile',
  )
}

/** Lower limits count at once, and higher ones once a person has confirmed them. */
export const createTighten = (deps: OperationsDeps) =>
  confirmedAct(
    (input: TightenInput, caller: Caller, facts: RequestFacts) => tighten(deps, input, caller, facts),
    async (input, person) => {
      const { basis, ...request } = input as RaiseInput
      const wanted = wantedOf(request, deps.platformLimits)
      return (scope) => raise(deps, { forAgent: request.for_agent, basis, wanted }, person, scope)
    },
  )

type RaiseInput = TightenInput & { basis?: JsonObject }
type Decision = { before: View; wanted: rules.Wanted }

async function save(
  { random, coolingMs }: OperationsDeps,
  tx: Tx,
  subject: Subject,
  { before, wanted, now }: Decision & { now: Date },
): Promise<Changed[]> {
  const { userId } = subject
  const { own, tightened, raised, remaining } = rules.decide(before, wanted)
  if (tightened.length + raised.length === 0) return []
  const effectiveAt = later(now, coolingMs)
  const added = raised.map((field) => ({
    id: uuidv7(now, random),
    field,
    value: wanted[field]!,
    requestedAt: now,
    effectiveAt,
  }))
  if (linkCoolsUntil(subject.linkedAt, { now, coolingMs }))
    await store.storeLimits(tx, userId, before.own, tightened)
  // Limits set by the agent itself, or by its person through an established link, outlast the link.
  else await store.forgetLimits(tx, userId, tightened)
  await store.savePolicy(tx, userId, { own, version: before.version + 1, now })
  await store.saveChanges(tx, userId, [...remaining, ...added])
  return [
    ...(tightened.length > 0 ? [{ cause: 'tightened' as const, fields: tightened }] : []),
    ...(raised.length > 0 ? [{ cause: 'raised' as const, fields: raised, effectiveAt }] : []),
  ]
}

function raiseRequest(
  { chainName }: OperationsDeps,
  { for_agent: _forAgent, ...input }: TightenInput,
  { caller, subject }: { caller: Caller; subject: Subject },
  { before, wanted, raised }: Decision & { raised: (keyof rules.Limits)[] },
): ActRequest {
  const given = new Map(Object.entries(input))
  const fields = raised.map((field) => [fieldNames[field], given.get(fieldNames[field])])
  return {
    operation: 'policy_tighten',
    input: {
      for_agent: subject.agentId,
      basis: basisOf(before, raised),
      ...Object.fromEntries(fields),
    } as JsonObject,
    text: `Raise the limits of ${whose(subject, caller)}`,
    details: raiseDetails(raised, { before: before.limits, wanted, chainName }),
  }
}

type Raise = { forAgent: string | undefined; basis: JsonObject | undefined; wanted: rules.Wanted }

function raise(deps: OperationsDeps, { forAgent, basis, wanted }: Raise, person: Caller, scope: ActScope) {
  const { view, platformLimits, coolingMs, chainName } = deps
  return change(deps, { caller: person, forAgent }, scope, async (tx, now, subject) => {
    assertUncontested(subject.contestedAt)
    await store.lockPolicy(tx, subject.userId, now)
    const before = await view(tx, subject.userId)
    assertWithinPlatform(platformLimits, wanted)
    assertSameBasis(basis, basisOf(before, Object.keys(wanted) as (keyof rules.Limits)[]))
    const changed = await save(deps, tx, subject, { before, wanted, now })
    const raised = changed.flatMap((each) => (each.cause === 'raised' ? each.fields : []))
    const mail = mailOfRaised(later(now, coolingMs), raised, () =>
      raisedText(subject, raised, { before: before.limits, wanted, chainName }),
    )
    return { answer: policyView(await view(tx, subject.userId), coolingMs), changed, mail }
  })
}

async function tighten(deps: OperationsDeps, input: TightenInput, caller: Caller, facts: RequestFacts) {
  const { view, platformLimits, coolingMs, acts } = deps
  const wanted = wantedOf(input, platformLimits)
  const scope = toActScope(facts)
  return change(deps, { caller, forAgent: input.for_agent }, scope, async (tx, now, subject) => {
    const { userId } = subject
    await store.lockPolicy(tx, userId, now)
    const before = await view(tx, userId)
    const { raised } = rules.decide(before, wanted)
    let requested: RequestedAct | undefined
    if (raised.length > 0) {
      assertScope(caller, 'propose')
      assertWithinPlatform(platformLimits, wanted)
      const act = raiseRequest(deps, input, { caller, subject }, { before, wanted, raised })
      requested = await acts.requestAct(scope, act, caller)
    }
    const wider = rules.widenedFields(before.limits, wanted)
    const lowered = Object.fromEntries(
      Object.entries(wanted).filter(([field]) => !wider.includes(field as keyof rules.Limits)),
    )
    const changed = await save(deps, tx, subject, { before, wanted: lowered, now })
    const answer = {
      ...policyView(await view(tx, userId), coolingMs),
      ...(requested && { confirmation: confirmationOf(requested) }),
    }
    return { answer, changed }
  })
}
