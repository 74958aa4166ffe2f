import type { Asker, Caller } from './caller.ts'
import { Fault } from './fault.ts'

/** Whether `assertFreshPerson` passes. */
export function isFreshPerson({ person }: Pick<Caller, 'person'>, now: Date): boolean {
  const at = person?.signIn.at
  return !!person && !!at && now.getTime() - at.getTime() <= person.signIn.ageMaxSeconds * 1_000
}

function principalOf(caller: Caller, now: Date): Asker['principal'] {
  if (caller.via === 'chat') return 'chat'
  // Who may approve needs no approval: an app without `manage` is an agent also right after a sign-in.
  return isFreshPerson(caller, now) && caller.scopes.has('manage') ? 'person' : 'agent'
}

export const askerOf = (caller: Caller, now: Date): Asker => ({
  userId: caller.userId,
  agentId: caller.agentId,
  principal: principalOf(caller, now),
  ...(caller.person && { clientId: caller.person.clientId }),
})

/**
 * The only check of acts that are for people: the token of a person, with an account, who signed in a short time ago.
 * A key pair never passes, and neither does a client that refreshes an old sign-in.
 */
export function assertFreshPerson(
  { person }: Pick<Caller, 'person'>,
  now: Date,
  extras: Readonly<Record<string, unknown>> = {},
): void {
  if (!person)
    throw new Fault(
      'step_up_required',
      'Only a person can do this, with an access token of a sign-in at `/oauth/authorize`; a key pair never can. Ask the person that this agent belongs to',
      { extras: { ...extras, requires: 'person' } },
    )
  if (isFreshPerson({ person }, now)) return
  const { at, ageMaxSeconds } = person.signIn
  throw new Fault(
    'step_up_required',
    `The person has to sign in again: send the browser to \`/oauth/authorize\` with \`prompt=login consent\` or \`max_age=${ageMaxSeconds}\`, redeem the code, and call with the new access token within ${ageMaxSeconds} seconds. A refreshed token keeps the time of its sign-in`,
    {
      extras: {
        ...extras,
        requires: 'fresh_sign_in',
        max_age_seconds: ageMaxSeconds,
        signed_in_at: at?.toISOString() ?? null,
      },
    },
  )
}
