import { inflected, verbs } from './lexicon-actions.ts'
import { directions, moods, periods, talk } from './lexicon-talk.ts'
import { account, indicatorWords, markets, portfolio, products, refused } from './lexicon-topics.ts'

/**
 * The words of the language, as data. A concept is what several phrases mean alike; the longest phrase wins. Verbs in
 * their base form are actions; inflected forms have a concept of their own that ends in `_`, so that a statement about
 * an action is never the action.
 */

/** Words of the language that name nothing here; a misspelt word is never one of them. */
export const plainWords =
  'the a an and or but of to in on at for from with by as is are was were be been being i you he she we they me him her us my your his their our this that these those it its there here what which who whom when where why how all any some each every both few more most other such only own same so than too very can could will would shall should may might must do does did have has had having not no nor about after again before between during through under over above below up down out off then once just now also into onto per via until while because if else get got give given go goes going make made want wants need needs like know think see say said tell show check look find much many lot lots little less least best worst good bad big small high low new old first last next long short time day week month year today tomorrow yesterday please thanks really still ever never always often money cash thing things something anything nothing everything people person friend left right way around near without within against still quite pretty maybe back even well am let usual one two three four five six seven eight nine ten whole there their them started start using used use place happy since early late ago during yet enough able name number amount total size level side part kind type list line state point case fact house home work works team game play read write talk speak call called words word text message page site link color sea poem france capital country city water food music movie weather joke story book recipe sports football'.split(
    ' ',
  )

/** Symbols that are words too count in capitals, with a dollar sign, or where an asset is expected. */
export const commonSymbols = new Set(
  'near one gas link me get go do not for on real fun safe people cat dog just her him all any can trust cash gold win play now new big art ray mask super story magic high time move beam prime core form hot ten rose sun lit cow bat ant band key loom moon uni gala sand flow op id not ip s h'.split(
    ' ',
  ),
)

export const nicknames = {
  assets: {
    bitcoin: 'BTC',
    bitcoins: 'BTC',
    btcs: 'BTC',
    ethereum: 'ETH',
    ether: 'ETH',
    eths: 'ETH',
    solana: 'SOL',
    sols: 'SOL',
    hyperliquid: 'HYPE',
    dogecoin: 'DOGE',
    doge: 'DOGE',
    ripple: 'XRP',
    avalanche: 'AVAX',
    chainlink: 'LINK',
    tether: 'USDT',
    'usd coin': 'USDC',
    usdcs: 'USDC',
    aerodrome: 'AERO',
    dogwifhat: 'WIF',
    jupiter: 'JUP',
    matic: 'POL',
  },
  chains: {
    eth: 'ethereum',
    mainnet: 'ethereum',
    'eth mainnet': 'ethereum',
    'ethereum mainnet': 'ethereum',
    arb: 'arbitrum',
    'arbitrum one': 'arbitrum',
    sol: 'solana',
    poly: 'polygon',
    matic: 'polygon',
    'base chain': 'base',
  },
} as const

/** Contractions and short spellings, by the words that they stand for. */
export const contractions: Readonly<Record<string, string>> = {
  "what's": 'what is',
  whats: 'what is',
  "how's": 'how is',
  hows: 'how is',
  "where's": 'where is',
  wheres: 'where is',
  "who's": 'who is',
  "when's": 'when is',
  "it's": 'it is',
  "that's": 'that is',
  "there's": 'there is',
  "i'm": 'i am',
  im: 'i am',
  "i've": 'i have',
  ive: 'i have',
  "i'd": 'i would',
  "i'll": 'i will',
  "we're": 'we are',
  "you're": 'you are',
  "they're": 'they are',
  "let's": 'lets',
  "don't": 'do not',
  dont: 'do not',
  "can't": 'cannot',
  cant: 'cannot',
  "won't": 'will not',
  wont: 'will not',
  "isn't": 'is not',
  isnt: 'is not',
  "aren't": 'are not',
  "doesn't": 'does not',
  doesnt: 'does not',
  "didn't": 'did not',
  didnt: 'did not',
  "shouldn't": 'should not',
  "wouldn't": 'would not',
  "couldn't": 'could not',
  "haven't": 'have not',
  "hasn't": 'has not',
  "mustn't": 'must not',
  u: 'you',
  ur: 'your',
  gimme: 'give me',
  pls: 'please',
  plz: 'please',
  thx: 'thanks',
  wat: 'what',
  wht: 'what',
  "he's": 'he is',
  "she's": 'she is',
  "we'll": 'we will',
  "wasn't": 'was not',
  "weren't": 'were not',
  "could've": 'could have',
  "would've": 'would have',
  "should've": 'should have',
  "who'd": 'who would',
}

export const actions: ReadonlySet<string> = new Set(
  Object.keys(verbs).filter((concept) => concept !== 'GIVE'),
)

/** Phrases that imply another concept. */
const implied: Record<string, string> = {
  PERP: `${products.PERP}|${products.PERPFROM}`,
  EARN: `${products.EARN}|${products.EARNFROM}`,
  FROM: `${directions.FROM}|${products.PERPFROM}|${products.EARNFROM}`,
  PRICE: `${markets.PRICE}|in dollars|in usd|in us dollars|quote me|quote|price me|price quote`,
  LIMIT: `${portfolio.LIMIT}`,
  BUY: `${verbs.BUY}|limit buy|buy limit`,
  SELL: `${verbs.SELL}|limit sell|sell limit`,
  LONG: `${verbs.LONG}|limit long`,
  SHORT: `${verbs.SHORT}|limit short`,
  SUPPOSE: `${moods.SUPPOSE}`,
}

export const concepts: Readonly<Record<string, string>> = {
  ...verbs,
  ...inflected,
  ...markets,
  ...indicatorWords,
  ...portfolio,
  ...products,
  ...account,
  ...refused,
  ...talk,
  ...directions,
  ...periods,
  ...moods,
  ...implied,
}
