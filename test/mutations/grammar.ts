import { mutationsOf } from './mutation.ts'

const questions = ['test/proof/agent/questions.test.ts']
const clauses = ['src/grammar/clauses.test.ts']
const plans = ['test/proof/agent/plans.test.ts']
const threads = ['test/proof/agent/threads.test.ts']
const answers = ['test/proof/agent/answers.test.ts']
const costs = ['src/grammar/cost.test.ts']

/** What the chat takes for an order, what it calls for it, and what a model may propose. */
export const grammarMutations = [
  ...mutationsOf(
    'src/grammar/clauses.ts',
    [...clauses, ...questions],
    [
      [
        "return 'reported'\n  if (tokens.some((token) => token.kind",
        "return 'do'\n  if (tokens.some((token) => token.kind",
        'what somebody else said is an order',
      ],
      [
        "has(token, 'NEGATE'))) return 'negated'",
        "has(token, 'NEGATE'))) return 'do'",
        'a negated order is an order',
      ],
      [
        "has(token, 'SUPPOSE'))) return 'suppose'",
        "has(token, 'SUPPOSE'))) return 'do'",
        'a thought is an order',
      ],
      [
        'if (isInflected(token) || !isSkipped(token)) return -1',
        'if (isInflected(token)) return -1',
        'the verb of any sentence is the verb of an order',
      ],
      ['(isQuestion && !polite) ||', '', 'an order with a question mark is an order'],
      [
        "isReported ||= part.tokens.some((token) => has(token, 'REPORT')) || mood === 'reported'",
        "isReported = part.tokens.some((token) => has(token, 'REPORT'))",
        'a quotation ends with its first sentence',
      ],
    ],
  ),
  ...mutationsOf(
    'src/grammar/lex.ts',
    ['src/grammar/lex.test.ts'],
    [
      [
        '(text[at] === "\'" && !isWordChar(text[at - 1]))',
        'false',
        'words in single quotes are words of the user',
      ],
      ['if (/^0x/i.test(run)) {', 'if (/^0y/i.test(run)) {', 'a cut address is a word'],
    ],
  ),
  ...mutationsOf('src/grammar/score-intents.ts', questions, [
    ["!found.has('@timed') && ", '', 'an order for tomorrow is done today'],
  ]),
  ...mutationsOf(
    'src/grammar/quantity.ts',
    ['src/grammar/quantity.test.ts'],
    [
      [
        "const digits = fraction.padEnd(places, '0')",
        'const digits = fraction',
        'a suffix shifts no digits that were not written',
      ],
      [
        'const isBroken = !(grouped || plainForm) || digits.length > digitsMax',
        'const isBroken = digits.length > digitsMax',
        'a number with two meanings gets one of them',
      ],
    ],
  ),
  ...mutationsOf('src/grammar/clarifying-question.ts', questions, [
    [
      "if (number && frame.effect !== 'read' && frame.effect !== 'none')",
      "if (number && frame.effect === 'quote')",
      'an order runs although a number of it has no place',
    ],
  ]),
  ...mutationsOf('src/grammar/amounts.ts', questions, [
    [
      "if (!amount || amount.kind === 'number') return\n  take(reader, amount.at)",
      "if (!amount || (amount.kind === 'number' && amount.asset < 0)) return\n  take(reader, amount.at)",
      'a bare number beside a coin is dropped or counts the coin',
    ],
  ]),
  ...mutationsOf('src/grammar/build-intent.ts', questions, [
    [
      'steps: isThought ? steps.filter((step) => !changes(step, registry)) : steps,',
      'steps,',
      'a thought is carried out',
    ],
  ]),
  ...mutationsOf('src/grammar/interpret-clause.ts', questions, [
    [
      'hasCondition && !(waitsForPrice && isPriceCondition)',
      'false',
      'an order with a condition is done at once',
    ],
  ]),
  ...mutationsOf('src/grammar/intents-perp.ts', questions, [
    [
      "STOP TARGET WITHDRAW EARN @chainto+PERPFROM')",
      "STOP TARGET WITHDRAVV EARN @chainto+PERPFROM' as never)",
      'a rule names a concept that the lexicon does not define',
    ],
  ]),
  ...mutationsOf('src/grammar/understand-message.ts', threads, [
    [
      'const isLong = isCut || tokens.length > orderTokensMax',
      'const isLong = false',
      'a pasted text holds orders',
    ],
    [
      'const sure = isOpen ? reads : intents',
      'const sure = intents',
      'a part of a message is done while another is open',
    ],
  ]),
  ...mutationsOf('src/grammar/interpret-reply.ts', threads, [
    [
      'if (isMutating(frame) && !isRepeat) {',
      'if (frame.effect === "none") {',
      'a fragment repeats an order',
    ],
  ]),
  ...mutationsOf('src/grammar/thread-memory.ts', threads, [
    [
      'export const contextMs = 30 * 60_000',
      'export const contextMs = 24 * 60 * 60_000',
      'a fragment changes the request of yesterday',
    ],
    [
      'export const pendingMs = 10 * 60_000',
      'export const pendingMs = 24 * 60 * 60_000',
      'a value answers the question of yesterday',
    ],
  ]),
  ...mutationsOf('src/grammar/input-formulas-swap.ts', plans, [
    ["1n, 10n ** 34n, 'up')", '1n, 10n ** 34n)', 'dollars for a number of coins are rounded down'],
    [
      'if (isWhole && held.length > 1)',
      'if (isWhole && held.length > 9)',
      'a share of a coin on two chains is taken from one of them',
    ],
  ]),
  ...mutationsOf('src/grammar/lex.ts', costs, [
    [
      'runOf(text, at, addressLengthMax + 1)',
      'runOf(text, at)',
      'a long run is read again at each of its pieces',
    ],
  ]),
  ...mutationsOf('src/grammar/clause-reader.ts', costs, [
    ['facts ??= factsOf(tokens)', 'facts = factsOf(tokens)', 'each word is compared with all others'],
  ]),
  ...mutationsOf(
    'src/kernel/async/event-loop-turns.ts',
    ['src/kernel/async/event-loop-turns.test.ts'],
    [['runsMax: 1,', 'runsMax: 100,', 'the texts of many chats are read at once, and others wait']],
  ),
  ...mutationsOf('src/grammar/input-formulas-venue.ts', plans, [
    ['toUnits(wanted, 18) > toUnits(limit, 18)', 'false', 'the chat raises a limit'],
    [
      "(slots.side === 'long') === (leg === 'target')",
      "leg === 'target'",
      'the stop of a short is below its price',
    ],
  ]),
  ...mutationsOf('src/grammar/input-formulas-close.ts', plans, [
    [
      'if (atVenue.length + outstandingIds(context).length <= 1) return holds',
      'return holds',
      'one order is said, and all of the coin are cancelled',
    ],
  ]),
  ...mutationsOf('src/grammar/mandate.ts', plans, [
    ['toUnits(wanted, 18) > 0n &&', '', 'a proposal of nothing passes as less'],
    ['toUnits(wanted, 18) <= toUnits(said, 18)', 'true', 'a model spends more than was said'],
    ['if (left <= 0) {', 'if (left < 0) {', 'an order is done twice'],
    [
      'if (!isLess) return field',
      'if (!isLess && said !== undefined) return field',
      'a proposal adds fields that nobody said',
    ],
  ]),
  ...mutationsOf('src/grammar/answer.ts', answers, [
    ["else write(own, 'unknown')", "else write(own, '0')", 'an unknown figure is a zero'],
    ['if (fault || nowMs - fetchedAtMs < freshMs) continue', 'continue', 'an old figure has no age'],
  ]),
]
