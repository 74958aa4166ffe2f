import { mutationsOf } from './mutation.ts'

const slots = ['test/chat/slots.test.ts']
const images = ['test/images/charges.test.ts']
const streams = ['test/chat/streams.test.ts']
const recommendations = ['test/chat/recommendations.test.ts']
const cleanText = ['src/agent/model/clean-text.test.ts']
const sentences = ['src/agent/model/sentence-splitter.test.ts']
const injections = ['test/proof/agent/injected-tools.test.ts']
const recommendationTexts = ['test/proof/agent/recommendation-text.test.ts']
const honestAnswers = ['test/proof/agent/honest-answers.test.ts']
const credits = ['test/chat/credits.test.ts']

/** Chats: what is stored before it is sent, what an answer costs, and what it may start. */
export const chatMutations = [
  ...mutationsOf('src/features/chat/tool-runner.ts', honestAnswers, [
    ['await throwIfRefused(deps, tool, call.input)', '', 'what the gateway refuses is recommended'],
  ]),
  ...mutationsOf('src/grammar/interpret-clause.ts', honestAnswers, [
    ['...(unread !== undefined && { unread })', '', 'an answer is silent about what it has not read'],
  ]),
  ...mutationsOf('src/durable/run/runner.ts', images, [
    ['if (isResumable) lost.abort()', 'lost.abort()', 'an instance that stops has images made twice'],
  ]),
  ...mutationsOf('src/features/chat/chat.ts', slots, [
    ['      isResumable: true,\n', '', 'an instance that stops waits for its answers'],
  ]),
  ...mutationsOf('src/features/chat/event-writer.ts', streams, [
    [
      "if (!isWritten) throw new ClaimLost('another instance runs the turn')",
      '',
      'an instance that lost its claim shows events that are not stored',
    ],
  ]),
  ...mutationsOf('src/features/chat/chat.ts', streams, [
    [
      'if (id === chatId && /^\\d{1,9}$/.test(seq)) return Number(seq)',
      'if (/^\\d{1,9}$/.test(seq)) return Number(seq)',
      'an answer goes on behind an event of another one',
    ],
    ["if (turn?.user_id !== userId) throw notFound('chat', 'chat_threads')", '', 'anybody reads an answer'],
  ]),
  ...mutationsOf('src/features/chat/turn-streams.ts', streams, [
    [
      "if (known.cancel_requested) turn.stop('cancelled')",
      "if (known.cancel_requested && !known.chat_id) turn.stop('cancelled')",
      'a cancelled answer goes on',
    ],
    [
      'await store.noteListeners(db, elsewhere, clock.now())',
      '',
      'an answer stops although a stream of another instance listens',
    ],
  ]),
  ...mutationsOf('src/features/chat/run-turn.ts', credits, [
    ["if (stop === 'suspended')", "if (stop === 'deadline')", 'a suspended user gets an answer'],
  ]),
  ...mutationsOf('src/engines/stored-callers/stored-caller.ts', credits, [
    ['if (isRevoked || isUnlinked) throw', 'if (isUnlinked) throw', 'a revoked token goes on to call tools'],
  ]),
  ...mutationsOf('src/features/chat/tool-runner.ts', recommendations, [
    [
      "if (effect === 'tighten' && !(await deps.mandate()).take(call, made)) throw notAsked(call.name)",
      '',
      'the kill switch is called without a word of the user',
    ],
    ['if (proposed.size >= recommendationsMax)', 'if (false)', 'an answer recommends without a limit'],
  ]),
  ...mutationsOf('src/features/chat/decide-recommendation.ts', recommendations, [
    [
      'if (!tool || callHash(name, input) !== intent_sha256)',
      'if (!tool)',
      'another input than the one that was shown is started',
    ],
    ["if (await isStarted(deps, row)) throw decided('accepted')", '', 'what was started is declined'],
  ]),
  ...mutationsOf('src/agent/model/clean-text.ts', cleanText, [
    [
      "return cleaned.replace(opening, ' ')",
      'return cleaned',
      'a link that is cut in sentences reaches the reader',
    ],
    [".replace(entity, '& ')", '', 'an address in character references reaches the reader'],
    ['{0,30}:)?[\\\\\\\\/]{2,}', '{0,30}:)?//', 'an address with backslashes reaches the reader'],
    [".replace(hidden, '')", '', 'an address with hidden signs reaches the reader'],
  ]),
  ...mutationsOf('src/agent/model/sentence-splitter.ts', sentences, [
    [
      'else if (buffer.length > wordCharactersMax) found',
      'else if (buffer.length > 1e9) found',
      'a model that writes no white space stops the process',
    ],
  ]),
  ...mutationsOf('src/features/chat/tool-runner.ts', injections, [
    [
      'if (!isAsked && (await taint.has())) throw notAsked(call.name)',
      '',
      'what a model has read is recommended to the user',
    ],
    [
      "if (messages.some(({ role }) => role === 'assistant')) taint.add()",
      '',
      'what a model has written before is recommended to the user',
    ],
    [
      '    ...text,\n',
      '    ...text,\n    title: JSON.stringify(turn.query),\n',
      'a recommendation has other words than those of its operation',
    ],
  ]),
  ...mutationsOf('src/features/chat/tool-registry.ts', injections, [
    [
      "const closedGroups = ['auth', 'webhooks', 'chat', 'markets', 'strategies', 'subscriptions']",
      "const closedGroups = ['auth', 'chat', 'markets', 'strategies', 'subscriptions']",
      'a chat recommends a webhook',
    ],
  ]),
  ...mutationsOf('src/features/chat/recommendation/recommendation-text.ts', recommendationTexts, [
    ['taken.has(field) ? []', 'words || taken.has(field) ? []', 'a recommendation leaves an argument out'],
  ]),
  ...mutationsOf('src/features/chat/recommendation/value-words.ts', recommendationTexts, [
    [
      "if (typeof value === 'string' && plainWord.test(value)) return value",
      "if (typeof value === 'string') return value",
      'a text of others is printed as if the gateway had written it',
    ],
    [
      'fromUnits(BigInt(text), token.decimals)',
      'fromUnits(BigInt(text), 6)',
      'an amount is shown in wrong units',
    ],
  ]),
]
