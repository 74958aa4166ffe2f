import type { Caller } from './caller.ts'
import { Fault } from './fault.ts'

/**
 * The only check of acts that are for people: the token of a person, with an account, who signed in a short time ago.
 * A key pair never passes, and neither does a client that refreshes an old sign-in.
 */
export function assertFreshPerson({ person }: Pick<Caller, 'person'>, now: Date): void {
  if (!person)
    throw new Fault(
      'step_up_required',
      'Only a person can do this, with an access token of a sign-in at `/oauth/authorize`; a key pair never can. Ask the person that this agent belongs to',
      { extras: { requires: 'person' } },
    )
  const { at, ageMaxSeconds } = person.signIn
  const ageSeconds = at === null ? Number.POSITIVE_INFINITY : (now.getTime() - at.getTime()) / 1_000
  if (ageSeconds <= ageMaxSeconds) return
  throw new Fault(
    'step_up_required',
    `The person has to sign in again: send the browser to \`/oauth/authorize\` with \`prompt=login consent\` or \`max_age=${ageMaxSeconds}\`, redeem the code, and call with the new access token within ${ageMaxSeconds} seconds. A refreshed token keeps the time of its sign-in`,
    {
      extras: {
        requires: 'fresh_sign_in',
        max_age_seconds: ageMaxSeconds,
        signed_in_at: at?.toISOString() ?? null,
      },
    },
  )
}
