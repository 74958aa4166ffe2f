import { mutationsOf } from './mutation.ts'

/** Token signatures, tokens, scopes, and credits. */
export const identityMutations = [
  ...mutationsOf(
    'src/features/auth/key-signature-check.ts',
    ['test/identity/ed25519.test.ts'],
    [
      [
        'Math.abs(nowSeconds - signedSeconds) > windowSeconds',
        'Math.abs(nowSeconds - signedSeconds) > windowSeconds * 2',
        'an old signature buys a token',
      ],
      [
        'expiresAt: new Date(signedMs + replayWindowMs)',
        'expiresAt: new Date(now.getTime() + replayWindowMs)',
        'a signature with a later timestamp is dropped while it is still valid',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/store.ts',
    ['test/identity/ed25519.test.ts'],
    [
      [
        'insert into spent_signature (digest, expires_at) values ($1, $2) on conflict do nothing returning 1',
        'insert into spent_signature (digest, expires_at) values ($1, $2) on conflict (digest) do update set expires_at = excluded.expires_at returning 1',
        'a signature buys several tokens',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/ed25519.ts',
    ['src/features/auth/ed25519.test.ts'],
    [
      [
        'y < p && !smallOrderY.has(y)',
        'y < p',
        'a key under which every text has a valid signature can be registered',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/failure-budgets.ts',
    ['src/features/auth/failure-budgets.test.ts'],
    [
      [
        'count > failuresMax)',
        'count > failuresMax + 1)',
        'one wrong signature more than allowed is checked',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/tokens.ts',
    ['test/identity/registration.test.ts'],
    [
      ['      known.invalidate(hash)\n', '', 'a revoked token is valid until it leaves the cache'],
      [
        'if (isCurrent && cached.expiresAtMs > now) return assertActive(cached)',
        'if (isCurrent) return assertActive(cached)',
        'a token outlives its expiry by the time of the cache',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/contract/assert-scope.ts',
    ['src/invoke/authorize.test.ts'],
    [
      [
        'if (caller.scopes.has(scope)) return',
        "if (caller.scopes.has(scope) || scope === 'earn') return",
        'a token without the scope moves money in and out of the vault',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/credits/buckets.ts',
    ['src/features/credits/buckets.test.ts'],
    [
      [
        'each.expires_at <= now',
        'each.expires_at < now',
        'credits are spent at the moment at which they expire',
      ],
    ],
  ),
  ...mutationsOf(
    'src/sdk/oauth-session.ts',
    ['test/oauth/login.test.ts'],
    [
      [
        'known : await store.exclusive(() => renew(refused))',
        'known : await renew(refused)',
        'concurrent commands use one refresh token twice, which ends the sign-in',
      ],
    ],
  ),
  ...mutationsOf(
    'src/sdk/oauth-sign-in.ts',
    ['test/oauth/login.test.ts'],
    [
      [
        'if (iss !== null && iss !== pending.issuer)',
        'if (iss === null)',
        'a code of another authorization server is sent to this one',
      ],
    ],
  ),
]
