import { subjectOf } from '#engines/agent-links/owners.ts'
import { type Caller, toActScope } from '#kernel/contract/caller.ts'
import { notFound } from '#kernel/contract/fault.ts'
import { implement } from '#kernel/contract/operation.ts'
import { change, type OperationsDeps } from './apply-and-publish-change.ts'
import { contract } from './contract.ts'
import { createKill } from './kill-switch.ts'
import { policyView, type View } from './policy-view.ts'
import * as store from './store.ts'
import { createTighten } from './tighten.ts'

export function createOperations(deps: OperationsDeps) {
  const { db, view, coolingMs } = deps
  const toResponse = (state: View) => policyView(state, coolingMs)
  const show = async (caller: Caller, forAgent: string | undefined) =>
    toResponse(await view(db, (await subjectOf(db, caller, forAgent)).userId))

  return implement(contract, {
    show: ({ for_agent }, caller) => show(caller, for_agent),

    tighten: createTighten(deps),

    cancelChange: async ({ change_id: changeId, for_agent: forAgent }, caller, request) => {
      if (request.isReplay) return show(caller, forAgent)
      return change(deps, { caller, forAgent }, toActScope(request), async (tx, now, { userId }) => {
        await store.lockPolicy(tx, userId, now)
        const { own, pending, version } = await view(tx, userId)
        const cancelled = pending.find(({ id }) => id === changeId)
        if (!cancelled) throw notFound('pending change', 'policy_show')
        const remaining = pending.filter((each) => each !== cancelled)
        // An instance whose clock is ahead may have put the cancelled change into effect already. The new version of
        // the policy refuses the tasks that were admitted under that change.
        await store.savePolicy(tx, userId, { own, version: version + 1, now })
        await store.saveChanges(tx, userId, remaining)
        return {
          answer: toResponse(await view(tx, userId)),
          changed: [{ cause: 'cancelled', fields: [cancelled.field] }],
        }
      })
    },

    kill: createKill(deps),
  })
}
