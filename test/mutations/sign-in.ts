import { mutationsOf } from './mutation.ts'

/** Sign-in of people: here, elsewhere, and with the tokens of somebody else. */
export const signInMutations = [
  ...mutationsOf(
    'src/features/oauth/sessions.ts',
    ['test/oauth/sessions.test.ts'],
    [
      [
        'if (!row || row.is_ended) return undefined',
        'if (!row) return undefined',
        'a session comes back after its sign-out',
      ],
      [
        'return isOver || wasEnded ? undefined',
        'return isOver ? undefined',
        'a session comes back after a new password',
      ],
      [
        'return isOver || wasEnded ? undefined',
        'return wasEnded ? undefined',
        'a session that is used lasts for ever',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/sign-in-request.ts',
    ['test/oauth/sessions.test.ts'],
    [
      [
        'const enteredAtMs = enteredAt.getTime()',
        'const enteredAtMs = enteredAt.getTime() + 60_000',
        'a sign-in that was not finished enters after every access has ended',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/approvals/approvals-edge.ts',
    ['test/oauth/approvals-page.test.ts'],
    [
      [
        'return caller.userId === signedIn?.personId ? caller : undefined',
        'return caller',
        'the next person at a browser decides the requests of the one before',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/record-adapter.ts',
    ['test/oauth/contested.test.ts'],
    [
      [
        "if (typeof token?.grantId === 'string') await grants.contest(token.grantId)",
        '',
        'two uses of a refresh token at one moment are no sign of a thief',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/contested-grants.ts',
    ['test/oauth/contested.test.ts'],
    [
      [
        "and (g.payload->>'clientId' = $2 or",
        "and (g.payload->>'clientId' = $2 or false and",
        'a thief stays with a client that registers anew',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/grant-revocation.ts',
    ['test/oauth/contested.test.ts'],
    [
      [
        'for (const each of clients) announcements.push(await endApps(tx, { personId, clientId: each }))',
        '',
        'the webhook of a thief outlives the connection',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/sign-in/interaction.ts',
    ['test/oauth/contested.test.ts'],
    [
      [
        '    await grants.endContested(chosen.accountId, String(interaction.params.client_id))\n',
        '',
        'a thief who refreshed first keeps the connection',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/grant-loader.ts',
    ['test/oauth/contested.test.ts'],
    [
      [
        'return known && !(await grants.isContested(known)) ?',
        'return known ?',
        'a contested grant is used without asking the person',
      ],
    ],
  ),
  ...mutationsOf(
    'src/invoke/invocation.ts',
    ['test/oauth/account-page.test.ts'],
    [
      [
        'person && isOwnClient(person.clientId) ? `pages:${userId}` : `user:${userId}`',
        '`user:${userId}`',
        'an app uses up the reads of the page that would disconnect it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/auth/revoke.ts',
    ['test/journeys/tokens.test.ts'],
    [
      [
        'all ? await endApps(tx, { personId: userId, clientId: undefined }) : () => {}',
        '() => {}',
        'a webhook that a stolen token has added outlives the tokens',
      ],
    ],
  ),
  ...mutationsOf(
    'src/invoke/authorize.ts',
    ['test/proof/authorization-matrix.test.ts'],
    [
      [
        'if (caller.person && !caller.person.hasSignedUp) throw signupRequired()',
        '',
        'a person without an account has to connect the app again',
      ],
      [
        '  assertScope(caller, access)\n',
        '  if (!caller.person) assertScope(caller, access)\n',
        'the app of a person may do everything',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/agents/link.ts',
    ['test/proof/authorization-matrix.test.ts'],
    [['  if (!caller.person) throw forPeople()\n', '', 'an agent links another one to itself']],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/provider.ts',
    ['test/oauth/policy-changes.test.ts'],
    [
      [
        'if (clientId === undefined || !isOwnClient(clientId)) return jwt',
        'if (clientId === undefined) return jwt',
        'the token of an app says when its person signed in',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/sign-in-request.ts',
    ['test/oauth/facade.test.ts'],
    [
      [
        'mergeWithLastSubmission: true',
        "mergeWithLastSubmission: 'login' in result",
        'a client that asks for a fresh sign-in never gets its code',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/browser-request-checks.ts',
    ['src/edges/oauth/provider/browser-request-checks.test.ts'],
    [
      ['|| !saysWhoPressed ||', '||', 'nobody with Safari approves anything'],
      ["headers['sec-fetch-user'] === '?1'", 'true', 'a script presses the button of an approval'],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/sign-in/interaction.ts',
    ['test/oauth/consent.test.ts'],
    [
      [
        'if (!isProven(form, interaction.session))',
        'if (!interaction.session)',
        'a script that learns the address of a consent connects an app',
      ],
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
        'email === undefined || !isEmailVerified',
        'email === undefined',
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
    'src/upstreams/openid/openid.ts',
    ['test/oauth/proxy-pages.test.ts'],
    [
      [
        "typeof seconds === 'number' && seconds * 1_000 + clockToleranceMs >= leftAtMs",
        "typeof seconds === 'number'",
        'a sign-in from before the request confirms an act',
      ],
      [
        "typeof seconds === 'number' && seconds * 1_000 + clockToleranceMs >= leftAtMs",
        'seconds === undefined || seconds * 1_000 + clockToleranceMs >= leftAtMs',
        'a provider that ignores what it is asked for confirms acts',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/sign-in/external-sign-in.ts',
    ['test/oauth/proxy-pages.test.ts'],
    [
      [
        'mayConfirm(interaction) ? person.value.signedInAt : null',
        'person.value.signedInAt',
        'a session at the identity provider is a fresh sign-in',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/proxy-edge.ts',
    ['test/oauth/proxy-pages.test.ts'],
    [
      [
        'own?.isOwnRequest(request.raw) ?',
        'own ?',
        'the token endpoint of this gateway is open where another server issues the tokens',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/email-sign-in.ts',
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
    'src/features/oauth/passwords.ts',
    ['test/oauth/sign-in-limits.test.ts'],
    [
      [
        'knownPerson === undefined ? ofStrangers',
        'knownPerson !== address ? ofStrangers',
        'guesses of strangers hold up every sign-in',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/email-sign-in.ts',
    ['test/oauth/sign-in-limits.test.ts'],
    [
      [
        "        await limits.giveBack(budgets)\n        if (isOverloaded(error)) return refuse('overloaded')\n        throw error\n      }\n      await limits",
        "        if (isOverloaded(error)) return refuse('overloaded')\n        throw error\n      }\n      await limits",
        'a check that was not made counts as a wrong guess',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/message-limits.ts',
    ['test/oauth/sign-in-limits.test.ts'],
    [
      ['sent < unpausedMax ? [] : [pause]', '[pause].slice(1)', 'strangers fill a mailbox all day'],
      [
        'max: 1, windowMs: dayMs',
        'max: 1',
        'a mailbox without an account gets that message every quarter of an hour',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/authorization-server-records.ts',
    ['test/oauth/boundaries.test.ts'],
    [['const openedMax = 20', 'const openedMax = 20_000', 'strangers fill the database with sign-ins']],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/revocation.ts',
    ['test/oauth/consent.test.ts'],
    [
      [
        'claims?.clientId === clientId ? claims?.grantId : undefined',
        'claims?.grantId',
        'an app that has seen the token of another one disconnects it',
      ],
      ['await records.revokeGrant(grantId)', 'grantId.at(0)', 'a client that signs out keeps its access'],
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
    ['test/oauth/proxy-pages.test.ts'],
    [['for (const { id } of given) await end(id)\n', '', 'an app that a person has disconnected goes on']],
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
      ['if (isOwnClient(clientId))', 'if (!clientId)', 'another server names the client of a page'],
      ['endedMs > 0 && iat <= endedMs / 1_000', 'endedMs < 0', 'a revoked token works again'],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/server-keys.ts',
    ['test/oauth/key-rotation.test.ts'],
    [['later(now, leadMs) : undefined', 'now : undefined', 'a key signs before anybody could read it']],
  ),
  ...mutationsOf(
    'src/features/oauth/authorization-server-records.ts',
    ['test/oauth/key-rotation.test.ts'],
    [['const unusedClientMs = dayMs', 'const unusedClientMs = 9 * dayMs', 'registrations of nobody stay']],
  ),
  ...mutationsOf(
    'src/features/oauth/passkey-verification.ts',
    ['test/oauth/passkey-attacks.test.ts'],
    [
      [
        'timingSafeEqual(Buffer.from(hashOfChallenge(challenge)), Buffer.from(hash))',
        'hashOfChallenge(challenge).length === hash.length',
        'a signature for another challenge signs in',
      ],
      ['crossOrigin === true', "crossOrigin === 'true'", 'a framed page uses a passkey'],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/passkey-challenges.ts',
    ['test/oauth/passkey-attacks.test.ts'],
    [
      ['!(await store.consume(holder))', 'false', 'a challenge counts twice'],
      ['const seconds = 300', 'const seconds = 3_000', 'a challenge lives longer than its page'],
      ['found?.purpose !== purpose', 'found === undefined', 'a challenge for a new passkey signs in'],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/passkey-store.ts',
    ['test/oauth/passkey-attacks.test.ts', 'test/oauth/passkeys.test.ts'],
    [
      [
        'credential.response.userHandle !== handleOf(row.id)',
        'credential.response.userHandle === undefined',
        'a passkey signs in under the handle of somebody else',
      ],
      [
        'and (sign_count < $2 or (sign_count = 0 and $2 = 0))',
        'and $2 >= 0',
        'a copied passkey signs in beside the original',
      ],
      [
        'on conflict (credential_id) do nothing returning id',
        'on conflict (credential_id) do update set person_id = excluded.person_id returning id',
        'a credential of one account moves to another',
      ],
      [
        'id = $1 and person_id = $2 returning name',
        'id = $1 and $2 <> $1 returning name',
        'a person removes the passkey of another',
      ],
      ["email = $2 for update'", "email = $2'", 'two sessions exceed the passkeys of an account'],
    ],
  ),
  ...mutationsOf(
    'src/features/oauth/email-sign-in.ts',
    ['test/oauth/passkey-attacks.test.ts', 'test/oauth/passkeys.test.ts'],
    [
      [
        'if (row.is_for_passkey) return accept({ verifiedEmail: row.email })',
        'if (row.is_for_passkey && row.password_hash) return accept({ verifiedEmail: row.email })',
        'a sign-up with a passkey is a sign-in by code',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/account/account-passkeys.ts',
    ['test/oauth/passkeys.test.ts'],
    [
      [
        'if (asked.isFresh) return run()',
        'if (asked.person) return run()',
        'an old session changes passkeys',
      ],
    ],
  ),
]
