import { mutationsOf } from './mutation.ts'

const rules = ['src/features/policy/chat-limit.test.ts']
const words = ['test/proof/agent/own-orders.test.ts']
const limit = ['test/identity/chat-limit.test.ts']
const budget = ['test/chat/budget.test.ts']
const crashes = ['test/crash/chat-budget-points.test.ts']

/** What chats start by themselves: only what the message orders, once, within the limit of its user. */
export const chatBudgetMutations = [
  ...mutationsOf('src/features/policy/rules.ts', rules, [
    [
      'own.chatPerDayMicros ?? 0n',
      'own.chatPerDayMicros',
      'chats start orders of users who have set no limit',
    ],
    [
      "if (principal !== 'chat' || usdMicros <= remaining) return null",
      'if (usdMicros >= 0n) return null',
      'the limit of chats is not enforced before a task exists',
    ],
    [
      'request.operation !== transferOperation && countedMicros(request) > 0n',
      'request.operation !== transferOperation',
      'a chat starts exits, which its limit does not count',
    ],
    [
      'request.operation !== transferOperation && countedMicros(request) > 0n',
      'countedMicros(request) > 0n',
      'a chat starts transfers',
    ],
  ]),
  ...mutationsOf('src/features/policy/approval-rules.ts', rules, [
    [
      "if (principal === 'person' || principal === 'gateway') return null",
      "if (principal !== 'agent' && principal !== 'app') return null",
      'a chat needs no approval where an agent needs one',
    ],
  ]),
  ...mutationsOf('src/store/migrations/06-policy/0006_chat_budget.sql', limit, [
    [
      "or x.counted + policy_chat_spent(x.user_id, x.created_at - interval '24 hours', null) > x.chat_per_day",
      'or x.counted > x.chat_per_day',
      'chats that run at once start more than the limit',
    ],
  ]),
  ...mutationsOf('src/features/policy/policy.ts', limit, [
    [
      'throwIfRefused(rules.refusedToChats(action, evaluated))',
      '',
      'chats start what counts nothing against their limit',
    ],
    [
      "reserved.is_of_chat ? { principal: 'chat' as const } : {}",
      '{}',
      'a task of a chat signs more than the limit of chats',
    ],
  ]),
  ...mutationsOf('src/durable/accept/sign-first-step.ts', budget, [
    [
      "if (wanted.admission.spend?.action.principal === 'chat') return undefined",
      '',
      'the limit of a chat is asked of a signature that does not know of it',
    ],
  ]),
  ...mutationsOf('src/durable/accept/acceptance.ts', budget, [
    [
      "spend?.action.principal === 'chat'",
      "spend?.action.operation === 'chat'",
      'what a chat starts does not count against its limit',
    ],
  ]),
  ...mutationsOf(
    'src/durable/accept/admit-task.ts',
    ['test/durable/approvals.test.ts'],
    [
      [
        "if (error instanceof ApprovalRequired && given.asker.principal !== 'chat')",
        'if (error instanceof ApprovalRequired)',
        'an order of a chat waits as a task for an approval',
      ],
    ],
  ),
  ...mutationsOf('src/features/policy/policy-input.ts', budget, [
    [
      'chatPerDayMicros: toUnits(chatPerDay, usdDecimals)',
      'perDayMicros: toUnits(chatPerDay, usdDecimals)',
      'the limit of chats is not lowered',
    ],
  ]),
  ...mutationsOf('src/features/chat/call-starter.ts', budget, [
    [
      'if (!(await isOrdered(call))) return undefined',
      '',
      'an answerer starts what the message does not order',
    ],
    ["via: 'chat' }", '}', 'an order of a chat counts as one of an agent'],
    [
      'if (!startable.has(name) && !reducing.has(name)) return undefined',
      '',
      'a chat starts operations beyond trades and deposits',
    ],
    ['begun.set(call.id, call)', '', 'an order of a message is carried out twice'],
  ]),
  ...mutationsOf('src/features/chat/call-starter.ts', crashes, [
    [
      'const isStarted = isRepeat && (await deps.isStarted(turn.userId, deps.keyOf(call.id)))',
      'const isStarted = false',
      'an order that was started before a crash is recommended after it',
    ],
    ['key: deps.keyOf(call.id)', 'key: crypto.randomUUID()', 'an order is started again after a crash'],
  ]),
  ...mutationsOf('src/features/chat/decide-recommendation.ts', budget, [
    [
      'key: deps.keyOf(keyOfCall(row.chat_id, row.call_id))',
      'key: deps.keyOf(row.recommendation_id)',
      'an acceptance starts again what the answer has started',
    ],
  ]),
  ...mutationsOf('src/features/chat/grammar-mandate.ts', words, [
    [
      'startable.has(operation) || reducing.has(operation)',
      'startable.has(operation)',
      'a run exits for somebody who has no scope of exits',
    ],
  ]),
  ...mutationsOf('src/grammar/own-orders.ts', words, [
    ['if (!isPlain(text)) return []', '', 'a pasted or quoted text orders'],
    ['? own : []', '? own : inThread', 'what the thread says orders'],
    [
      'left.splice(at < 0 ? left.length - 1 : at, 1)',
      'if (at >= 0) left.splice(at, 1)',
      'another call leaves the order open',
    ],
    [
      'if (step.each === undefined) return [order]',
      'return [order]',
      'an order for all positions closes only one of them',
    ],
    [
      'canonicalJson(proposal.input) === canonicalJson(input) &&',
      '',
      'an amount is taken from a read of something else',
    ],
  ]),
]
