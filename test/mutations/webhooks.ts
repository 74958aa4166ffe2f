import { mutationsOf } from './mutation.ts'

/** Whose webhooks are, and with whom they end. */
function appMutations() {
  const tests = ['test/webhooks/apps.test.ts']
  return [
    ...mutationsOf('src/features/notifications/webhooks/webhooks.ts', tests, [
      [
        '? view(await find(db, caller, input.webhook_id))',
        '? view((await store.webhooksOf(db, caller.userId)).find((each) => each.webhook_id === input.webhook_id)!)',
        'a replayed change shows the address that another app has named',
      ],
    ]),
    ...mutationsOf('src/features/oauth/grant-revocation.ts', tests, [
      [
        'if (isExpiredOnly && all.some((each) => each.is_live && each.id === grantId)) return () => {}',
        '',
        'a connection that was renewed meanwhile is removed as an expired one',
      ],
      [
        '        return endApps(tx, { personId, clientId })\n',
        '        return () => {}\n',
        'an app that was disconnected goes on getting the events',
      ],
      [
        'return isConnected ? () => {} : endApps(tx, app)',
        'return () => {}',
        'an app whose last grant was revoked goes on getting the events',
      ],
      [
        'return isConnected ? () => {} : endApps(tx, app)',
        'return endApps(tx, app)',
        'a browser that disconnects an app ends it for all others',
      ],
      [
        'return endApps(tx, { personId, clientId: undefined })',
        'return () => {}',
        'an app that knew the former password goes on getting the events',
      ],
      [
        'order by id for update',
        'order by id',
        'of two grants that end at once each takes the other one for alive',
      ],
    ]),
    ...mutationsOf('src/features/oauth/retention.ts', tests, [
      [" and model <> 'Grant'", '', 'the webhooks of an app outlive the time of its connection'],
    ]),
    ...mutationsOf('src/features/auth/store.ts', tests, [
      [
        'account_id = $2 for key share',
        'account_id = $2',
        'a webhook that is added during a disconnection outlives its app',
      ],
    ]),
    ...mutationsOf('src/features/notifications/webhooks/webhook-access.ts', tests, [
      [
        'return app === null || clientId === null || clientId === app',
        'return app === null || true',
        'an app reads, changes and redirects the webhooks of another one',
      ],
    ]),
    ...mutationsOf('src/features/notifications/webhooks/create-and-rotate.ts', tests, [
      [
        'each.url === url && isOwn(each, caller)',
        'each.url === url',
        'a replayed key shows another app the secret',
      ],
    ]),
    ...mutationsOf('src/features/notifications/webhooks/webhooks.ts', tests, [
      [
        'client_id: isMoved ? appOf(caller) : row.client_id',
        'client_id: row.client_id',
        'an app that redirects a webhook keeps it when it is disconnected',
      ],
    ]),
    ...mutationsOf('src/features/notifications/webhooks/webhook-events.ts', tests, [
      ['new URL(url).origin', 'url', 'the log shows every app the addresses of the others'],
    ]),
    ...mutationsOf(
      'src/features/oauth/external-tokens.ts',
      ['test/oauth/proxy.test.ts'],
      [
        [
          '{ accountId: personId, clientId, external: true, resources }',
          '{ accountId: personId, external: true, resources }',
          'an app of another authorization server goes on getting the events',
        ],
      ],
    ),
    ...mutationsOf(
      'src/admin/users.ts',
      ['test/journeys/admin.test.ts'],
      [
        [
          '    await endWebhooksOfApps(session)(tx, { personId: id, clientId: undefined })\n',
          '',
          'the thief of a key that was replaced goes on getting the events',
        ],
      ],
    ),
  ]
}

/** Messages to addresses of users: who can forge one, where it can go, and what is lost. */
export const webhookMutations = [
  ...mutationsOf(
    'src/features/notifications/webhooks/signature.ts',
    ['src/features/notifications/webhooks/signature.test.ts'],
    [
      ['[id, timestampSeconds, body]', '[timestampSeconds, body]', 'the signature does not cover the id'],
      ["'sha256', secret", "'sha256', Buffer.alloc(32)", 'everybody can sign'],
      ["    .join(' ')", "    .at(-1) ?? ''", 'during a rotation the new secret does not sign'],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/guarded-fetch/guarded-fetch.ts',
    ['test/oauth/guarded-fetch.test.ts'],
    [
      [
        '!addresses.every(isAllowed)',
        '!addresses.some(isAllowed)',
        'a name with one public address leads inside',
      ],
      ["if (url.port !== '') return", "if (url.port === '22') return", 'any port of a host is reached'],
      ["redirect: 'manual'", "redirect: 'follow'", 'a redirect leads inside'],
      [
        "allowLoopback && url.protocol === 'http:'",
        "url.protocol === 'http:'",
        'a stranger reaches this machine',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/delivery-run.ts',
    ['test/webhooks/delivery.test.ts'],
    [
      [
        '  const attempts = run.attempts + 1\n',
        '  const attempts = 1\n',
        'a message that fails is tried for ever',
      ],
      ['run.seq + 1n < page.oldest', 'run.seq < 0n', 'lost events are passed over without a word'],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/delivery-run.ts',
    ['test/webhooks/suspension.test.ts'],
    [
      [
        '    if (isSuspended) {\n',
        '    if (isSuspended && !isStored) {\n',
        'a delivery goes on after the user was suspended',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/claims.ts',
    ['test/webhooks/instances.test.ts'],
    [
      [
        'or c.owner not in (select id from live))',
        'or c.owner not in (select id from live) or true)',
        'two instances deliver to one webhook',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/claims.ts',
    ['test/webhooks/instances.test.ts'],
    [
      [
        ' and (place <= shared or not is_last)',
        '',
        'users whose addresses take long keep the webhooks of the others waiting',
      ],
      [
        'order by is_last, turn, served_at nulls first, webhook_id',
        'order by is_last, turn, webhook_id',
        'a user who was just served takes the place of one who never was',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/dispatcher.ts',
    ['test/webhooks/instances.test.ts'],
    [['  addAll(waiting, claims.waiting)\n', '', 'who finds no place is forgotten until a poll']],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/claims.ts',
    ['test/webhooks/suspension.test.ts'],
    [[' and u.suspended_at is null', '', 'events are posted to a suspended user']],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/claims.ts',
    ['test/webhooks/poll-plan.test.ts'],
    [
      ["['c.user_id', 's.user_id', 'u.id']", "['c.user_id']", 'each slice reads the logs of all users'],
      [
        'const retriesMax = 1_000',
        'const retriesMax = 1_000_000',
        'a poll reads every message that is tried again',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/cursor-sweep.ts',
    ['test/webhooks/instances.test.ts'],
    [
      [
        'from = next ?? firstId',
        'from = firstId',
        'events beyond the first slice whose hints were lost are never delivered',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/cursor-store.ts',
    ['test/webhooks/delivery.test.ts'],
    [
      [
        'where webhook_id = $1 and owner = $2 and epoch = $3 returning webhook_id, messages, user_id',
        'where webhook_id = $1 and $2::uuid is not null and $3::bigint is not null returning webhook_id, messages, user_id',
        'a delivery to a former address is taken for one to the new address',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/dispatcher.ts',
    ['test/webhooks/instances.test.ts'],
    [
      [
        '!isOnDuty() && startedMs < state.offDutyUntilMs',
        'startedMs < state.offDutyUntilMs',
        'an instance that comes on duty leaves the webhooks of the one before it until its next poll',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/cursor-store.ts',
    ['test/webhooks/instances.test.ts'],
    [
      [
        'return behind.length > 0',
        'return false',
        'an event that another instance commits during a release waits for a poll',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/notifications/webhooks/webhooks.ts',
    ['test/webhooks/delivery.test.ts'],
    [
      [
        '  else if (hasOtherTypes) await store.restartMessage(tx, id)\n',
        '',
        'the failures of a message that is not wanted any more count for the next one',
      ],
    ],
  ),
  ...appMutations(),
  ...mutationsOf(
    'src/features/notifications/webhooks/webhook-secrets.ts',
    ['test/webhooks/delivery.test.ts'],
    [['const formerMax = 2', 'const formerMax = 20', 'former secrets sign without a limit']],
  ),
]
