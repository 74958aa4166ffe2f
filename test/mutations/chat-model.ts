import { mutationsOf } from './mutation.ts'

const answers = ['test/chat/model-answers.test.ts']
const seam = ['test/chat/answerer.test.ts']
const faults = ['test/chat/model-faults.test.ts']

/** A language model answers the chat: what it may propose and say, and what it costs. */
export const chatModelMutations = [
  ...mutationsOf('src/features/chat/tool-runner.ts', seam, [
    [
      'filter(({ operation }) => isWithin(operation, scopes))',
      'filter(() => true)',
      'an answerer is shown tools beyond the access of its caller',
    ],
  ]),
  ...mutationsOf('src/features/chat/untrusted-text.ts', answers, [
    ['isWorded(field, value) || !token.test(value)', 'false', 'no text counts as that of a stranger'],
  ]),
  ...mutationsOf('src/features/chat/memoized-values.ts', seam, [
    [
      'if (earlier) return structuredClone(await earlier)',
      '',
      'an instance that takes a turn over asks the model for a second plan',
    ],
    ['if (size > noteBytesMax || bytes + size > turnBytesMax)', 'if (size < 0)', 'notes have no bound'],
  ]),
  ...mutationsOf('src/features/chat/credits-per-turn.ts', seam, [
    ['return charge < heldUnits ? charge : heldUnits', 'return charge', 'an answer costs more than was held'],
  ]),
  ...mutationsOf('src/kernel/money/model-token-prices.ts', seam, [
    [
      '(usd * creditsPerUsd + perMillion - 1n) / perMillion',
      '(usd * creditsPerUsd) / perMillion',
      'a part of a credit is not charged',
    ],
  ]),
  ...mutationsOf('src/agent/model/limits.ts', answers, [
    [
      '<= BigInt(creditsMax)) return tokens',
      '>= 0n) return tokens',
      'a model is asked for more than is held',
    ],
  ]),
  ...mutationsOf('src/agent/model/answer-stream.ts', answers, [
    [
      "if (mode === 'hold' && (rest !== '' || figures.unknownIn(text).length > 0))",
      'if (figures.unknownIn(text).length < 0)',
      'a number that nobody has read is printed like any other',
    ],
    ['const text = cleanAnswer(sentence)', 'const text = sentence', 'an answer loads an image of a stranger'],
  ]),
  ...mutationsOf('src/agent/model/calculate.ts', answers, [
    [
      "!figures.hasExactly(value.replace(/^-/, ''))",
      'value.length < 0',
      'a model makes any number a known one by calculating with it',
    ],
  ]),
  ...mutationsOf('src/agent/model/model-answerer.ts', faults, [
    [
      "if (run.session.said() === '' && run.counts.changes === 0)",
      "if (run.session.said() === '')",
      'the grammar recommends again what a model has recommended before it died',
    ],
  ]),
]
