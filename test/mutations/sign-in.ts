import { mutationsOf } from './mutation.ts'

/** Sign-in of people: here, elsewhere, and with the tokens of somebody else. */
export const signInMutations = [
  ...mutationsOf(
    'src/edges/oauth/interaction.ts',
    ['test/oauth/consent.test.ts'],
    [
      [
        "actingScopes.filter((scope) => form[scope] === 'yes')",
        'actingScopes.filter((scope) => words(interaction.params.scope).includes(scope))',
        'an app may do what it asked for, whatever the person chose',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/person-tokens.ts',
    ['test/oauth/consent.test.ts'],
    [
      [
        'readingScopes.includes(scope) || granted.includes(scope)',
        'readingScopes.includes(scope) || granted.length > 0',
        'the token of a person has every scope',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/federation.ts',
    ['test/oauth/facade.test.ts'],
    [
      [
        'email !== undefined && isEmailVerified',
        'email !== undefined',
        'an unverified address gets an account',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/identities.ts',
    ['test/oauth/facade.test.ts'],
    [
      [
        'where not exists (select from person_identity where person_id = person.id)',
        'where true',
        'a subject gets the account of another one that has its address',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/openid/openid.ts',
    ['test/oauth/facade.test.ts'],
    [
      [
        'execute: [client.enableNonRepudiationChecks, ',
        'execute: [',
        'the signature of an id token is not checked',
      ],
      ['          expectedNonce: pending.nonce,\n', '', 'an id token of another sign-in is accepted'],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/people.ts',
    ['test/oauth/sign-in-limits.test.ts'],
    [
      [
        'max: maxima.pair }] : [...own, account]',
        'max: maxima.pair }, account] : [...own, account]',
        'a stranger who guesses locks a person out',
      ],
      [
        'row.password_hash !== null) return',
        'row.password_hash === null) return',
        'a code that signs in deletes the password',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/known-browsers.ts',
    ['test/oauth/sign-in-limits.test.ts'],
    [
      [
        'timingSafeEqual(signatureOf(key, personId, id), given)',
        'signatureOf(key, personId, id).length === given.length',
        'a forged mark of a browser evades the limits',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/external-tokens.ts',
    ['test/oauth/proxy.test.ts'],
    [
      [
        'email_verified !== true',
        'email_verified === null',
        'a token with an unverified address of somebody else is accepted',
      ],
      ['endedMs > 0 && iat <= endedMs / 1_000', 'endedMs < 0', 'a revoked token works again'],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/keys.ts',
    ['test/oauth/key-rotation.test.ts'],
    [['later(now, leadMs) : undefined', 'now : undefined', 'a key signs before anybody could read it']],
  ),
  ...mutationsOf(
    'src/features/oauth/records.ts',
    ['test/oauth/key-rotation.test.ts'],
    [['const unusedClientMs = dayMs', 'const unusedClientMs = 9 * dayMs', 'registrations of nobody stay']],
  ),
]
