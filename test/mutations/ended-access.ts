import { mutationsOf } from './mutation.ts'

/** Access that ends, whatever ends it; and codes by email, which give it back. */
export const endedAccessMutations = [
  ...mutationsOf(
    'src/admin/access-tokens.ts',
    ['test/journeys/admin-tokens.test.ts'],
    [
      [
        '    await grants.endAll(id, actIn(tx))\n',
        '',
        'the operator ends no connection of a person whose tokens are revoked',
      ],
      [
        '  await session.notify([\n    ...accessTopics(id, hashes),\n',
        '  void ([\n',
        'a revoked token of a person is served from the cache',
      ],
      [
        '    await grants.end(grantId, actIn(tx))\n',
        '',
        'the refresh token lives on where the operator revokes an access token',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/message-limits.ts',
    ['test/oauth/sign-in-limits.test.ts'],
    [
      [
        'if (over.length > 0) return undefined',
        'return undefined',
        'two strange addresses take the codes of a person away',
      ],
      [
        'if (over.some((each) => each !== first)) return undefined',
        '',
        'an address that is over its limit uses up the codes of the account',
      ],
      ['const firstMax = 50', 'const firstMax = 5_000', 'many addresses flood the mailbox of a person'],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/person-tokens.ts',
    ['src/features/auth/person-tokens.test.ts'],
    [
      [
        'endedAt.set(userId, ++ends)',
        'clear()',
        'a key pair that revokes its tokens turns off the cache for all people',
      ],
      [
        'cached && !isEnded(cached) && cached',
        'cached && cached',
        'a token of a suspended person is served from the cache',
      ],
      [
        'isEnded(found) ? await load(token, hash) : found',
        'found',
        'a call after a suspension gets the verification that began before it',
      ],
      [
        'if (endedAt.size >= endedMax) clear()',
        'if (endedAt.size >= endedMax) endedAt.clear()',
        'many ended users bring a suspended one back',
      ],
    ],
  ),
  ...mutationsOf(
    'src/sdk/oauth-session.ts',
    ['test/oauth/login.test.ts'],
    [
      [
        'if (failure instanceof PorticoError && failure.retryable) throw stillSignedIn(failure)',
        '',
        'a sign-out without an answer forgets a connection that lives on',
      ],
    ],
  ),
]
