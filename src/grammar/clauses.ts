import { actions } from './english/lexicon.ts'
import { questionWords } from './english/word-lists.ts'
import { type Concept, list } from './feature-rules.ts'
import { has, type Token } from './tag.ts'

/** How a clause is meant: only a clause in the mood `do` may change anything. */
export type Mood = 'do' | 'ask' | 'suppose' | 'negated' | 'reported' | 'stated' | 'conditional'
export type Clause = {
  tokens: readonly Token[]
  mood: Mood
  /** The concepts that the verb at the head of an order may have; the list is empty if the clause is no order. */
  head: readonly Concept[]
  /** Whether the clause has a condition; an order waits only for a condition that is a price. */
  hasCondition: boolean
  isPriceCondition: boolean
  isQuestion: boolean
  /** Whether the clause names an order, whatever its mood is. */
  holdsOrder: boolean
  /** Whether the verb was mistyped. */
  isGuess: boolean
  /** Whether the verb is that of the clause before. */
  isCarried: boolean
}

const sentenceMarks = '.!?;\n'
const sentenceEnds = '.!?\n'
/** Words that may stand before the verb of an order. */
const prefixes = list(
  'FILLER POLITE WANT THEN TO ON FROM OF MINE AT PAYWITH LEVERAGE PERP SPOT EARN POSITION ORDERS STOP TARGET TRAILING LIMIT CREDITS MARGIN TOKENWORD ALL REST IT CHAINWORD SLIPPAGE ISOLATED CROSS ACCEPT OVERRIDE AGAIN ~1d ~1w ~1mo DAILY PERTX EVERY WEEKDAY FUTURE SCHEDULE GREET THANKS',
)
const questions = list('QUESTION EXPLAIN SHOULD CHATPRICE QUOTEWORD')
const nouns = list('HAVE PORTFOLIO POSITION ORDERS PNL CREDITS LIMITS')
/** The words that say what a clause is about, beside its verb. */
const contents = list(
  'PRICE CHANGE COMPARE MARKET FUNDING CHART ANALYSIS RESEARCH HAVE PORTFOLIO PNL HISTORY ORDERS ADDRESS POSITION LIQUIDATION APY EARNED SCAM SUPPORTED GAS CREDITS PACK LIMITS APPROVALS RECIPIENTS TASK WENT ACCOUNT HEALTH NOTIFICATION NEWS STOP TARGET',
)
const legs = list('STOP TARGET TRAILING')
const setting = list('SET')
const carriers = list('BUY SELL SWAP')

const isAction = (token: Token | undefined): boolean =>
  token?.isNoun !== true && (token?.concepts ?? []).some((concept) => actions.has(concept))
const isInflected = (token: Token): boolean =>
  token.isNoun !== true && token.concepts.some((concept) => concept.endsWith('_'))
const isMark = (token: Token | undefined, marks: string): boolean =>
  token?.kind === 'mark' && marks.includes(token.words)
const isSkipped = (token: Token): boolean =>
  token.kind === 'mark' ||
  token.kind === 'quantity' ||
  token.kind === 'address' ||
  token.kind === 'uuid' ||
  (token.asset !== undefined && token.isCommon === undefined) ||
  token.chain !== undefined ||
  has(token, ...prefixes)

/** Returns where a condition at the beginning of a clause ends: behind its comma, or before the verb. */
function conditionEnd(tokens: readonly Token[]): number {
  const first = tokens.findIndex((token) => token.kind !== 'mark' && !has(token, 'FILLER'))
  if (!has(tokens[first], 'IF')) return 0
  const comma = tokens.findIndex((token, at) => at > first && isMark(token, ','))
  if (comma >= 0) return comma + 1
  const verb = tokens.findIndex((token, at) => at > first + 1 && isAction(token))
  return Math.max(verb, 0)
}

/** Returns the position of the verb of an order, or -1: only words that may precede the verb stand before it. */
export function headOf(tokens: readonly Token[]): number {
  for (let at = conditionEnd(tokens); at < tokens.length; at++) {
    const token = tokens[at]
    if (!token) return -1
    if (has(token, ...questions) && !has(token, 'POLITE', 'WANT', 'FILLER')) return -1
    if (isAction(token)) return at
    if (has(token, 'GIVE') && tokens[at + 1]?.kind === 'quantity') return at
    if (isInflected(token) || !isSkipped(token)) return -1
  }
  return -1
}

const hasNumber = (tokens: readonly Token[]): boolean => tokens.some(({ kind }) => kind === 'quantity')

/** Whether the clause is an order without a verb, such as `stop loss at 2800 on my eth`. */
function isLegOrder(tokens: readonly Token[]): boolean {
  const first = tokens.find(
    (token) => token.kind !== 'mark' && !has(token, 'FILLER', 'POLITE', 'WANT', 'GIVE'),
  )
  return (
    first !== undefined &&
    (has(first, ...legs) || first.kind === 'quantity' || first.asset !== undefined) &&
    tokens.some((token) => has(token, ...legs)) &&
    hasNumber(tokens) &&
    tokens.every(
      (token) => isSkipped(token) || has(token, 'GIVE', 'ABOVE', 'BELOW', 'UP', 'DOWN', 'LONG', 'SHORT'),
    )
  )
}

/** What the look-ahead finds between a position and the end of its sentence. */
type Ahead = {
  /** The first token after the conjunctions, commas and fillers that begin at the position. */
  next: number
  saysAnd: boolean
  saysThen: boolean
  hasLeg: boolean
  hasAsset: boolean
  isQuestion: boolean
}

/** Returns what stands ahead of each position, read from right to left, so that each token is looked at once. */
function lookAhead(tokens: readonly Token[]): Ahead[] {
  const found: Ahead[] = []
  let behind: Ahead = {
    next: tokens.length,
    saysAnd: false,
    saysThen: false,
    hasLeg: false,
    hasAsset: false,
    isQuestion: false,
  }
  for (let at = tokens.length - 1; at >= 0; at--) {
    const token = tokens[at]
    const isLink = isMark(token, ',&+') || has(token, 'FILLER', 'POLITE', 'WANT', 'THEN')
    const isEnd = isMark(token, sentenceMarks)
    behind = {
      next: isLink ? behind.next : at,
      saysAnd: isLink && (has(token, 'AND') || behind.saysAnd),
      saysThen: isLink && (has(token, 'THEN') || behind.saysThen),
      hasLeg: !isEnd && (has(token, ...legs) || behind.hasLeg),
      hasAsset: !isEnd && (token?.asset !== undefined || behind.hasAsset),
      isQuestion: isMark(token, sentenceEnds) ? token?.words === '?' : behind.isQuestion,
    }
    found[at] = behind
  }
  return found
}

/** Collects what a clause has so far, while its tokens are added. */
function createBefore() {
  let length = 0
  let opening: Token | undefined
  let sinceOpening = 0
  const seen = {
    isAbout: false,
    asks: false,
    hasAsset: false,
    carries: false,
    hasNumber: false,
    hasSwapOrLeg: false,
    hasEntry: false,
    endsCondition: false,
  }
  return {
    seen,
    isEmpty: () => length === 0,
    /** Whether a condition began the clause and has not ended. */
    isInCondition: () => has(opening, 'IF') && !seen.endsCondition,
    add(token: Token) {
      length++
      if (opening) {
        sinceOpening++
        seen.endsCondition ||= isMark(token, ',') || (sinceOpening > 1 && isAction(token))
      } else if (token.kind !== 'mark' && !has(token, 'FILLER')) opening = token
      seen.isAbout ||= isAction(token) || isInflected(token) || has(token, ...contents)
      seen.asks ||= has(token, 'QUESTION')
      seen.hasAsset ||= token.asset !== undefined && !token.isCommon
      seen.carries ||= has(token, ...carriers)
      seen.hasNumber ||= token.kind === 'quantity'
      seen.hasSwapOrLeg ||= has(token, 'SWAP', ...legs)
      seen.hasEntry ||= has(token, 'LONG', 'SHORT', 'BUY')
    },
  }
}
type Before = ReturnType<typeof createBefore>

/** Whether an amount is followed by its asset and by another one that it is swapped into: `10 usdc to dai`. */
const namesPair = (tokens: readonly Token[], at: number): boolean =>
  tokens[at + 1]?.asset !== undefined && has(tokens[at + 2], 'TO') && tokens[at + 3]?.asset !== undefined

/** Whether a conjunction begins a new clause: `and`, a comma or `then` does, if an order or a question follows. */
function beginsClause(
  { tokens, aheads, from }: { tokens: readonly Token[]; aheads: readonly Ahead[]; from: number },
  { seen }: Before,
): boolean {
  const ahead = aheads[from]
  const at = ahead?.next ?? from
  const next = tokens[at]
  // A clause does not end before it says what it is about: `on base, buy` is one order, and so is a clause that begins
  // with a condition or a negation.
  const isAbout = seen.isAbout || (seen.asks && seen.hasAsset)
  if (!ahead || !next || at === from || !isAbout) return false
  if (ahead.saysAnd && has(next, 'MINE') && has(tokens[at + 1], ...nouns)) return true
  if (ahead.saysAnd && has(next, 'SHOW')) return true
  if (has(next, 'QUESTION')) return ahead.saysAnd || ahead.saysThen
  const isCarried =
    next.kind === 'quantity' &&
    (has(tokens[at + 1], 'OF') || tokens[at + 1]?.asset !== undefined) &&
    seen.carries &&
    seen.hasNumber &&
    (!seen.hasSwapOrLeg || namesPair(tokens, at))
  if (isCarried) return tokens.slice(at, at + 4).some((token) => token.asset !== undefined)
  if (!isAction(next)) return false
  // The legs of a bracket belong to the order that they protect.
  const own = aheads[at]
  return !(has(next, 'SET') && own?.hasLeg && !own.hasAsset && seen.hasEntry)
}

/** A part of a message that becomes a clause; `isJoined` says that the part before it is in the same sentence. */
type Part = { tokens: Token[]; isQuestion: boolean; isJoined: boolean }

function split(tokens: readonly Token[]): Part[] {
  const parts: Part[] = []
  let own: Token[] = []
  let before = createBefore()
  let isJoined = false
  const end = ({ isQuestion, joins = false }: { isQuestion: boolean; joins?: boolean }): void => {
    if (own.some(({ kind }) => kind !== 'mark')) parts.push({ tokens: own, isQuestion, isJoined })
    own = []
    before = createBefore()
    isJoined = joins
  }
  const aheads = lookAhead(tokens)
  for (const [at, token] of tokens.entries()) {
    // The question mark at the end of a sentence covers its clauses.
    const isQuestion = aheads[at]?.isQuestion === true
    if (isMark(token, sentenceMarks)) {
      end({ isQuestion, joins: token.words === ';' })
      continue
    }
    const isJoint = isMark(token, ',&+') || has(token, 'JOINT', 'THEN')
    if (
      isJoint &&
      !before.isEmpty() &&
      !before.isInCondition() &&
      beginsClause({ tokens, aheads, from: at }, before)
    ) {
      end({ isQuestion, joins: true })
      continue
    }
    own.push(token)
    before.add(token)
  }
  end({ isQuestion: false })
  return parts
}

const first = (tokens: readonly Token[]): Token | undefined =>
  tokens.find((token) => token.kind !== 'mark' && (!has(token, 'FILLER') || has(token, ...questions)))

const holdsOrder = (tokens: readonly Token[]): boolean =>
  tokens.some((token) => isAction(token) || isInflected(token)) || isLegOrder(tokens)

function moodOf(
  { tokens, isQuestion }: Part,
  { head, isAct, isReported }: { head: number; isAct: boolean; isReported: boolean },
): Mood {
  const polite = tokens.slice(0, Math.max(head, 0)).some((token) => has(token, 'POLITE', 'WANT'))
  const starts = first(tokens)
  if (isAct && (isReported || tokens.some((token) => has(token, 'REPORT')))) return 'reported'
  if (tokens.some((token) => token.kind === 'quoted') && isAct && head < 0) return 'reported'
  const asks =
    (isQuestion && !polite) ||
    ((has(starts, ...questions) || questionWords.has(starts?.words.split(' ')[0] ?? '')) &&
      !has(starts, 'POLITE', 'WANT', 'NEGATE', 'ACCEPT'))
  if (isAct && !asks && tokens.some((token) => has(token, 'NEGATE'))) return 'negated'
  if (tokens.some((token) => has(token, 'SUPPOSE'))) return 'suppose'
  if (asks) return 'ask'
  // A verb in the question of a prediction market, such as `odds of a rate cut`, orders nothing.
  const isAbout = tokens.some((token) => has(token, 'PREDMKT'))
  if (head < 0 && !isLegOrder(tokens)) return isAct && !isAbout ? 'stated' : 'ask'
  if (tokens.some((token) => has(token, 'PAST'))) return 'stated'
  return 'do'
}

/** Whether a clause only asks about an order, as with `how do i` or `should i`. */
const asksHow = (token: Token | undefined): boolean => has(token, 'ASKHOW', 'EXPLAIN', 'SHOULD')

const isSubject = (token: Token | undefined): boolean =>
  token !== undefined &&
  (token.asset !== undefined || has(token, 'FILLER', 'IT', 'MINE', 'PRICE', 'OF', 'TOKENWORD'))

/** Whether each condition is a price: a subject, a direction and a number, and nothing else. */
function conditionsArePrices(tokens: readonly Token[]): boolean {
  return tokens.every((token, from) => {
    if (!has(token, 'IF')) return true
    let at = from + 1
    while (isSubject(tokens[at])) at++
    if (!has(tokens[at], 'ABOVE', 'BELOW', 'AT')) return false
    return tokens
      .slice(at + 1, at + 3)
      .some(({ quantity }) => quantity?.unit === 'usd' || quantity?.unit === 'number')
  })
}

/**
 * Splits a message into clauses, in spoken order. After a quotation of somebody else, every later clause counts as
 * reported.
 */
export function clausesOf(tokens: readonly Token[]): Clause[] {
  let isReported = false
  let carried: readonly Concept[] = []
  let before: { mood: Mood; isOrder: boolean } | undefined
  return split(tokens).map((part) => {
    const at = headOf(part.tokens)
    const verb = part.tokens[at]
    const starts = first(part.tokens)
    const isAct = holdsOrder(part.tokens)
    const isCarried = at < 0 && carried.length > 0 && starts?.kind === 'quantity'
    const ownMood = isCarried && !part.isQuestion ? 'do' : moodOf(part, { head: at, isAct, isReported })
    // In `what if i sold it and bought that` the mood of the first order holds for the orders that are joined to
    // it.
    const mood =
      part.isJoined && before?.isOrder && before.mood !== 'do' && ownMood === 'do' ? before.mood : ownMood
    before = { mood, isOrder: isAct || asksHow(starts) }
    isReported ||= part.tokens.some((token) => has(token, 'REPORT')) || mood === 'reported'
    const isOwnLeg = isLegOrder(part.tokens) && part.tokens.some((token) => has(token, 'MINE'))
    const given = verb?.concepts ?? (isCarried ? carried : isLegOrder(part.tokens) ? setting : [])
    // `tp 3000 for my eth long` is about a position that exists already, so it sets an exit and opens nothing.
    const own = isOwnLeg ? setting : given
    const thought = part.tokens.find((token) => isAction(token) || isInflected(token))?.concepts ?? []
    const head =
      mood === 'do'
        ? own
        : mood === 'suppose'
          ? thought.map((concept) => concept.replace(/_$/, '') as Concept)
          : []
    carried = mood === 'do' ? own.filter((concept) => carriers.includes(concept)) : []
    return {
      tokens: part.tokens,
      mood,
      head,
      hasCondition: part.tokens.some((token) => has(token, 'IF')),
      isPriceCondition: conditionsArePrices(part.tokens),
      isQuestion: part.isQuestion,
      holdsOrder: isAct,
      isGuess: verb?.isGuess === true,
      isCarried: isCarried && mood === 'do',
    }
  })
}
