import { type Asker, approvalsClientId, type Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'

export function isFreshPerson({ person }: Pick<Caller, 'person'>, now: Date): boolean {
  if (person?.clientId !== approvalsClientId) return false
  const { at, ageMaxSeconds } = person.signIn
  return at !== null && now.getTime() - at.getTime() <= ageMaxSeconds * 1_000
}

const principalOf = ({ via, person }: Caller): Asker['principal'] => {
  if (via === 'chat' || via?.isChat) return 'chat'
  return person ? 'app' : 'agent'
}

/**
 * Returns who asks. The limit above which a person has to approve an action applies to every caller, also to an app of
 * that person: only an approval makes a request the person's own.
 */
export const askerOf = (caller: Caller): Asker => ({
  userId: caller.userId,
  agentId: caller.agentId,
  principal: principalOf(caller),
  ...(caller.person && { clientId: caller.person.clientId }),
  ...(typeof caller.via === 'object' && { run: caller.via }),
})

/**
 * The only check of who approves: it passes on the page of approvals, for a person who signed in a short time
 * ago. A token of an app never passes, refreshed or not, and neither does one of a key pair.
 */
export function assertFreshPerson(
  caller: Pick<Caller, 'person'>,
  now: Date,
  extras: Readonly<Record<string, unknown>> = {},
): void {
  if (isFreshPerson(caller, now)) return
  if (caller.person?.clientId === approvalsClientId)
    throw new Fault('step_up_required', 'You have to sign in again', {
      extras: { ...extras, requires: 'fresh_sign_in' },
    })
  throw new Fault(
    'step_up_required',
    typeof extras.confirm_url === 'string'
      ? `Only the person can do this, on a page of this gateway: let the person open ${extras.confirm_url}`
      : 'Only the person can do this, on a page of this gateway. Where none is served, the operator does it by a command',
    { extras: { ...extras, requires: 'person' } },
  )
}

/** Refuses an act that a person has to confirm on an account that no person owns. */
export const personRequired = (): Fault =>
  new Fault(
    'step_up_required',
    'Only a person can confirm this, and no person belongs to this agent: link it to one by `agents_link_code`',
    { extras: { requires: 'person' } },
  )
