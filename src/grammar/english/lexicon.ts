import { directions, moods } from './function-words.ts'
import { talk } from './greetings-and-replies.ts'
import { account, indicatorWords, markets, portfolio, predictions, products, refused } from './nouns.ts'
import { periods } from './periods.ts'
import { inflected, verbs } from './verbs.ts'

/**
 * The words of the language, as data. A concept is the meaning that several phrases share; the longest phrase wins.
 * Verbs in their base form are actions; inflected forms have concepts of their own that end in `_`, so that a
 * statement about an action is never the action.
 */

export const actions: ReadonlySet<string> = new Set(
  Object.keys(verbs).filter((concept) => concept !== 'GIVE'),
)

/** Phrases that have a further concept: `limit buy` has the concept `BUY` too. */
const implied = {
  PERP: `${products.PERP}|${products.PERPFROM}`,
  EARN: `${products.EARN}|${products.EARNFROM}`,
  FROM: `${directions.FROM}|${products.PERPFROM}|${products.EARNFROM}`,
  PRICE: `${markets.PRICE}|in dollars|in usd|in us dollars|quote me|quote|price me|price quote`,
  BUY: `${verbs.BUY}|limit buy|buy limit`,
  SELL: `${verbs.SELL}|limit sell|sell limit`,
  LONG: `${verbs.LONG}|limit long`,
  SHORT: `${verbs.SHORT}|limit short`,
}

export const concepts = {
  ...verbs,
  ...inflected,
  ...markets,
  ...indicatorWords,
  ...portfolio,
  ...products,
  ...account,
  ...predictions,
  ...refused,
  ...talk,
  ...directions,
  ...periods,
  ...moods,
  ...implied,
}
