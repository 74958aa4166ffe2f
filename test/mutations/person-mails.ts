import { mutationsOf } from './mutation.ts'

/** What people are notified by mail, and what they see and undo on their own pages. */
const mails = ['test/oauth/mails.test.ts']
const accountPage = ['test/oauth/account-page.test.ts']
const readers = ['test/durable/approval-readers.test.ts']
export const personMailMutations = [
  ...mutationsOf('src/engines/person-mails/mail-queue.ts', mails, [
    [
      'greatest(excluded.due_at, m.sent_at + make_interval(secs => ${pauseMs / 1_000}))',
      'excluded.due_at',
      'a person gets a message for each change of a minute',
    ],
    [
      "items = case when m.sending is null then '[]'::jsonb else m.items end,",
      "items = '[]'::jsonb,",
      'a change that comes while a message is tried again is never notified',
    ],
    [
      "due_at = case when items = '[]'::jsonb then null else $5::timestamptz end",
      'due_at = null',
      'what came while a message was sent is never notified',
    ],
    [
      'then m.items || excluded.items else m.items end',
      'then excluded.items else m.items end',
      'of several changes the last one alone is notified',
    ],
    [
      'then 0 else 1 end,\n       due_at = coalesce',
      'then 0 else 0 end,\n       due_at = coalesce',
      'changes beyond the limit of a message are not counted',
    ],
    ['limit $3 for update skip locked)', 'limit $3)', 'two instances claim the same message at once'],
    [
      'sending = coalesce(m.sending, jsonb_build_object(',
      'sending = coalesce(null, jsonb_build_object(',
      'a message that was not accepted loses its changes',
    ],
  ]),
  ...mutationsOf('src/engines/person-mails/mailer.ts', mails, [
    [
      'await sendEmail({ to: email, ...message, key: sending.key })',
      'await sendEmail({ to: email, ...message })',
      'a repeated message has another key, and is delivered twice',
    ],
    [
      'if (!failure) return void (await settleMail(db, mail, { now }))',
      'return void (await settleMail(db, mail, { now }))',
      'a message that the service refuses is lost',
    ],
    ['immediately: true', 'immediately: false', 'a message of a gateway that was killed waits for a hint'],
  ]),
  ...mutationsOf(
    'src/engines/person-mails/mail-text.ts',
    ['src/engines/person-mails/mail-text.test.ts'],
    [
      [
        "/[^\\p{L}\\p{N} '()&+,_-]/gu",
        "/[^\\p{L}\\p{N} '()&+,_.:/-]/gu",
        'the name of an app is a link in a message',
      ],
      ['It takes effect on ${timeText(effectiveAt)}.', 'It takes effect.', 'a message does not say when'],
    ],
  ),
  ...mutationsOf('src/features/policy/apply-and-publish-change.ts', mails, [
    ['if (mail && caller.person)', 'if (mail && changed.length > 1)', 'nobody is notified of a raised limit'],
  ]),
  ...mutationsOf('src/features/policy/kill-switch.ts', mails, [
    [
      "mail: { kind: 'trading_resumed', text: resumedText(subject) },",
      '',
      'nobody is notified of a lifted kill switch',
    ],
  ]),
  ...mutationsOf(
    'src/features/policy/recipients.ts',
    ['test/oauth/account-browser.test.ts'],
    [
      [
        "await deps.mailQueue.add(tx, person.userId, 'recipient_added', { text, effectiveAt: row.effective_at })",
        '',
        'nobody is notified of a new recipient',
      ],
    ],
  ),
  ...mutationsOf('src/features/agents/link.ts', mails, [
    [
      "await mailQueue.add(tx, person.userId, 'agent_linked', { text })",
      '',
      'nobody is notified of a linked agent',
    ],
  ]),
  ...mutationsOf('src/features/oauth/email-sign-in.ts', mails, [
    [
      "await mailQueue.add(tx, id, 'password_changed', { text: passwordChanged })",
      '',
      'nobody is notified of a new password',
    ],
    [
      'await revokeAccount(id, { tx, afterCommit: (run) => callbacks.push(run) })',
      '',
      'a new password leaves every session as it is',
    ],
  ]),
  ...mutationsOf('src/edges/oauth/provider/record-adapter.ts', mails, [
    [
      'isOwnClient(String(grant.clientId))',
      'grant.clientId === null',
      'each visit of the own pages is notified as an app that was connected',
    ],
    [
      '      : connections.connect(id, grant, seconds),',
      '      : store.upsert(id, grant, seconds),',
      'nobody is notified of a connected app',
    ],
  ]),
  ...mutationsOf(
    'src/features/oauth/passkey-store.ts',
    ['test/oauth/passkeys.test.ts'],
    [
      [
        "await mailQueue.add(tx, owner.id, 'passkey_added', {",
        "if (made.isSynced) await mailQueue.add(tx, owner.id, 'passkey_added', {",
        'nobody is notified of a new passkey',
      ],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/provider/provider.ts',
    ['test/oauth/attacks.test.ts'],
    [
      [
        'if (source) await refuseParallelRefresh(source, { oauth, clock, log })',
        '',
        'clients that refresh in parallel lose their connection',
      ],
      [
        'const refreshGraceMs = 10_000',
        'const refreshGraceMs = 100_000',
        'a stolen refresh token is used again without ending the connection',
      ],
    ],
  ),
  ...mutationsOf('src/edges/oauth/account/account-edge.ts', accountPage, [
    [
      'if (isRefusedOrigin(request.raw, baseUrl()))',
      'if (isRefusedOrigin(request.raw, request.headers.origin ?? baseUrl()))',
      'a form of another site acts on the account',
    ],
    [
      'access?.caller?.userId === person?.id ? access?.caller : undefined',
      'access?.caller',
      'who signs in to a browser sees the account of the person before',
    ],
    [
      "if (!step.endsWith('-options')) pages.assertOwnForm(request, form, asked.session)",
      '',
      'a form without the proof of the page stops trading',
    ],
  ]),
  ...mutationsOf('src/edges/oauth/sign-in/browser-session.ts', accountPage, [
    [
      'for (const clientId of ownClientIds) await end(session.personId, clientId)',
      '',
      'the tokens of the own pages outlive the session',
    ],
  ]),
  ...mutationsOf('src/edges/oauth/account/account-acts.ts', accountPage, [
    [
      "(agentId === '' ? {} : { for_agent: agentId })",
      '({})',
      'what a person does for an agent is done to the own account',
    ],
  ]),
  ...mutationsOf(
    'src/kernel/contract/caller.ts',
    ['test/oauth/account-browser.test.ts'],
    [
      [
        'isOwnClient = (clientId: string): boolean => ownClientIds.includes(clientId)',
        'isOwnClient = (clientId: string): boolean => clientId === approvalsClientId',
        'people have to connect the page of their account',
      ],
    ],
  ),
  ...mutationsOf('src/durable/approvals/approvals.ts', readers, [
    [
      'await (reader === userId ? accept() : deps.events.add(tx, reader, [requested]))',
      'if (reader === userId) await accept()\n    for (const reader of readers) if (reader !== userId) await deps.events.add(tx, reader, [requested])',
      'a request and a decision lock logs in opposite order',
    ],
  ]),
  ...mutationsOf('src/durable/approvals/approval-step.ts', readers, [
    [
      'if (task.cancel_requested) return commitEnd(deps, task, cancel(deps, approvers, approval))',
      "if (task.cancel_requested) return committer.step(task, cancelled('Cancelled on request'))",
      'the person never reads that a request was cancelled',
    ],
  ]),
  ...mutationsOf('src/durable/approvals/approval-store.ts', readers, [
    [
      'partition by a.user_id order by a.requested_at desc, a.task_id desc',
      'order by a.requested_at desc, a.task_id desc',
      'an agent that asks often hides the requests of the others',
    ],
    ['count(*) over ()::integer as total', '0 as total', 'nobody sees how many requests wait'],
  ]),
  ...mutationsOf(
    'src/admin/agents.ts',
    ['test/journeys/admin-agents.test.ts'],
    [
      [
        'await endLink(tx, { userId, person: owner, linkedAt, isUndone, ...ended }, now)',
        '',
        'what waits outlasts a link that an operator ends',
      ],
      [
        'for (const reader of [userId, owner.userId].sort())\n      await appendEvents(',
        'for (const reader of [userId])\n      await appendEvents(',
        'the person never reads that an operator has unlinked the agent',
      ],
    ],
  ),
]
