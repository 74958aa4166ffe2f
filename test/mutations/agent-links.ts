import { mutationsOf } from './mutation.ts'

/** Who decides for an agent, and what stops it. */
const links = ['test/oauth/agent-links.test.ts']
export const agentLinkMutations = [
  ...mutationsOf('src/features/policy/tighten.ts', links, [
    ['assertUncontested(subject.contestedAt)', '', 'a contested link raises limits'],
  ]),
  ...mutationsOf('src/features/auth/signed-act.ts', links, [
    ['!isReplay && !(await store', 'isReplay && !(await store', 'one signature gets two link codes'],
  ]),
  ...mutationsOf('src/engines/agent-links/owners.ts', links, [
    [
      'where u.agent_id = $1 and l.person_id = $2',
      'where u.agent_id = $1 and $2::uuid is not null',
      'everybody decides for a linked agent',
    ],
    ["' for share of l'", "''", 'an act for an agent runs beside its unlinking'],
  ]),
  ...mutationsOf('src/features/agents/agents.ts', links, [
    [
      "await assertSigned({ ...facts, tx }, 'agents_link_code', { caller, signed })",
      '',
      'a token alone gets a link code',
    ],
    [
      "await assertSigned({ ...facts, tx }, 'agents_contest', { caller, signed, says })",
      '',
      'a token alone contests a link',
    ],
    [
      'if (on) await policy.dropPending(tx, caller.userId)',
      '',
      'what waits becomes effective through a contested link',
    ],
  ]),
  ...mutationsOf('src/features/agents/link.ts', links, [
    ['await limits.giveBack(budgets)', '', 'right codes count as wrong ones'],
    [
      '(await limits.take(budgets)).length > 0',
      '(await limits.take(budgets)).length > 99',
      'codes can be guessed without end',
    ],
    ['known.length >= agentsMax', 'known.length > agentsMax', 'a person has one agent too many'],
    ['await store.lockLinksOf(tx, personId)', '', 'links at the same time exceed the limit'],
  ]),
  ...mutationsOf('src/features/agents/unlink.ts', links, [
    ['by === agentId\n', 'by === null\n', 'a token alone lifts what the person of its agent has set'],
    [
      'later(linkedAt, coolingMs) <= clock.now()',
      'later(linkedAt, coolingMs) > clock.now()',
      'an agent ends a link that has aged',
    ],
    [
      'await policy.endLink(tx, { userId, person, linkedAt, isUndone: lifts, ...ended })',
      '',
      'what waits outlasts the link',
    ],
  ]),
  ...mutationsOf('src/durable/approvals/approval-step.ts', links, [
    [
      'if (decidedBy !== person.agentId && !isByOperator)',
      'if (decidedBy === null)',
      'an act runs as a person who has confirmed nothing',
    ],
  ]),
  ...mutationsOf('src/durable/approvals/approvals.ts', links, [
    ['ofOthers + 2 * ofClient', 'ofOthers + ofClient', 'one app fills the places of all'],
  ]),
  ...mutationsOf(
    'src/features/hooks/hooks.ts',
    ['test/journeys/approvals.test.ts'],
    [
      [
        'register(deps, prepared, { userId }, scope)',
        'register(deps, prepared, _person, scope)',
        'a confirmed hook of an agent is one of its person',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/approvals/approvals.ts',
    ['test/journeys/approvals.test.ts'],
    [
      [
        ' || sellingActs.includes(found.intent.kind))',
        ')',
        'the person of a new link confirms what hooks of the agent sell',
      ],
    ],
  ),
  ...mutationsOf('src/features/agents/store.ts', links, [
    [
      'on conflict do nothing returning user_id, name',
      'on conflict (user_id) do update set person_id = excluded.person_id returning user_id, name',
      'a second person takes over an agent',
    ],
  ]),
  ...mutationsOf('src/features/policy/unlink-agent.ts', links, [
    [
      'if (stopped.length > 0) await',
      'if (stopped.length < 0) await',
      'an unlinking starts an agent that its person has stopped',
    ],
    ['await store.saveChanges(tx, userId, [])', '', 'a raised limit outlasts the link'],
    [
      'isUndone ? store.readStoredLimits(limitsBefore) : {}',
      '{}',
      'lowered limits outlast a link that ended within its time',
    ],
  ]),
  ...mutationsOf('src/features/policy/kill-switch.ts', links, [
    [
      'if (ofUsers.some(({ set_by: setBy }) => setBy !== by))',
      'if (set.length < 0)',
      'the person of a new link lifts every switch',
    ],
  ]),
  ...mutationsOf(
    'src/features/policy/store.ts',
    ['test/identity/policy.test.ts'],
    [
      [
        '(select person_id::text from agent_link where user_id = $1)',
        "''",
        'the switch of the person does not stop its agents at admission and signature',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/16-strategies/0006_spend.sql',
    ['test/identity/policy.test.ts'],
    [
      [
        '(select g.person_id::text from agent_link g where g.user_id = x.user_id)',
        "''",
        'a task is accepted beside the switch of the person',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/credits/signup-grants.ts',
    ['test/identity/registration.test.ts', ...links],
    [
      ['addressKey(address)', 'address', 'every address of a network of IPv6 gets first credits'],
      ['limits.take([budget], tx)', 'limits.take([budget])', 'a sign-up that fails takes from its address'],
      [
        'mailbox:$' + '{mailboxOf(email)}',
        'mailbox:$' + '{email}',
        'a mailbox gets first credits for each of its addresses',
      ],
      [
        'proofOf(`agent-of:',
        'proofOf(`agent-of:$' + '{userId}',
        'each agent of a person mints first credits',
      ],
    ],
  ),
]
