import type { Random } from '#kernel/id.ts'
import type { Records } from './authorization-server-records.ts'
import { hashOfChallenge } from './passkey-verification.ts'

/**
 * A passkey challenge belongs to one browser and one purpose, and is used once. `holder` identifies the browser: it is
 * the id of the interaction or the session that the browser's cookie names.
 */

export type ChallengePurpose = 'sign-in' | 'sign-up' | 'add'
type Owner = { personId: string; email: string }
export type TakenChallenge = { challengeHash: string; owner: Owner | undefined }

const seconds = 300
const challengeBytes = 32
const model = 'PasskeyChallenge'

type Stored = { purpose?: unknown; challengeHash?: unknown; owner?: Owner; consumed?: unknown }

export function createPasskeyChallenges({
  records,
  random,
}: {
  records: Pick<Records, 'of'>
  random: Random
}) {
  const store = records.of(model)
  return {
    /** Returns a new challenge, which replaces an earlier one of the same browser. */
    async issue(holder: string, purpose: ChallengePurpose, owner?: Owner): Promise<string> {
      const challenge = Buffer.from(random.bytes(challengeBytes)).toString('base64url')
      await store.destroy(holder)
      await store.upsert(
        holder,
        { purpose, challengeHash: hashOfChallenge(challenge), ...(owner && { owner }) },
        seconds,
      )
      return challenge
    },
    /** Uses a challenge up and returns it, whether or not the credential is accepted later. */
    async take(holder: string, purpose: ChallengePurpose): Promise<TakenChallenge | undefined> {
      const found = (await store.find(holder)) as Stored | undefined
      if (found?.purpose !== purpose || !(await store.consume(holder))) return undefined
      return { challengeHash: String(found.challengeHash), owner: found.owner }
    },
  }
}
