import {
  accessTopic,
  gapTopic,
  revokedHash,
  revokedTopic,
  userOfAccessTopic,
} from '#durable/events/notifier.ts'
import { readWallets } from '#engines/custody/wallet-store.ts'
import { createAuth } from '#features/auth/auth.ts'
import type { OnSignup } from '#features/auth/register.ts'
import { createCredits } from '#features/credits/credits.ts'
import { creditGrant } from '#features/credits/operator-grant.ts'
import { createSignupGrants } from '#features/credits/signup-grants.ts'
import { createSignInLimits } from '#features/oauth/sign-in-limits.ts'
import { type OAuthOverrides, openOAuth, personTokensTopic } from './oauth.ts'
import type { Parts } from './section-parts.ts'
import { openWebhooksOfApps } from './webhooks.ts'

type AuthParts = Pick<Parts, 'core' | 'scheduleClock' | 'net' | 'custody' | 'mails'> & { onSignup: OnSignup }
export type AuthOverrides = OAuthOverrides & {
  /** Runs in the transaction that creates a user, instead of the grant of the faucet. */
  onSignup?: OnSignup
}

const dayMs = 24 * 3_600_000

/** Opens the authentication of callers, and the credits that a new user gets. */
export function openAuth(
  { core, scheduleClock, net, custody, mails, onSignup }: AuthParts,
  overrides: AuthOverrides,
) {
  const webhooksOfApps = openWebhooksOfApps({ core, scheduleClock })
  const { config, db, taskEngine, clock, random, baseUrl } = core
  const credits = createCredits({ db, ledger: taskEngine.ledger, clock })
  const oauth = openOAuth({ core, net, custody, mails, webhooksOfApps }, overrides)
  const signups = createSignupGrants({
    grantSignup: credits.grantSignup,
    limits: createSignInLimits({ db, clock, windowMs: dayMs }),
    perAddressMax: config.SIGNUP_GRANTS_PER_DAY,
  })
  const auth = createAuth({
    db,
    oauth,
    creditsOf: (tx, userId) => credits.available(userId, tx),
    walletsOf: readWallets,
    transact: taskEngine.transact,
    announceSignUp(userId) {
      taskEngine.announceQueued()
      taskEngine.events.notify(userId)
    },
    clock,
    random,
    baseUrl,
    keystore: custody.keystore,
    tokenTtlMs: config.TOKEN_TTL_SECONDS * 1000,
    signInAgeMaxSeconds: config.FRESH_SIGN_IN_SECONDS,
    signups,
    endApps: webhooksOfApps.endApps,
    publishRevoked: async (userId, hashes) =>
      taskEngine.notifier.broadcast([...hashes.map(revokedTopic), accessTopic(userId)]),
    onSignup: overrides.onSignup ?? onSignup,
  })
  taskEngine.notifier.onAny((topic) => {
    if (topic === gapTopic) auth.clearTokenCache()
    const userId = userOfAccessTopic(topic)
    if (topic === personTokensTopic || userId !== undefined) auth.endPersonTokens(userId)
    const hash = revokedHash(topic)
    if (hash !== undefined) auth.onRevoked(hash)
  })
  const runBatch = async () => {
    await auth.sweep()
    return false
  }
  return {
    auth: { ...auth, part: 'auth' as const, jobs: [{ name: 'retention of credentials', runBatch }] },
    credits: { ...credits, kinds: [creditGrant] },
    signups,
    oauth,
  }
}
