import { byWord, wordSet } from '#grammar/word-maps.ts'

/** This module has lists of single words: plain words, short forms, nicknames and small classes. */

/** Plain words of English that name nothing in trading, so that they are never taken for misspelt words. */
export const plainWords = wordSet(
  'the a an and or but of to in on at for from with by as is are was were be been being i you he she we they me him her us my your his their our this that these those it its there here what which who whom when where why how all any some each every both few more most other such only own same so than too very can could will would shall should may might must do does did have has had having not no nor about after again before between during through under over above below up down out off then once just now also into onto per via until while because if else get got give given go goes going make made want wants need needs like know think see say said tell show check look find much many lot lots little less least best worst good bad big small high low new old first last next long short time day week month year today tomorrow yesterday please thanks really still ever never always often money cash thing things something anything nothing everything people person friend left right way around near without within against still quite pretty maybe back even well am let usual one two three four five six seven eight nine ten whole there their them started start using used use place happy since early late ago during yet enough able name number amount total size level side part kind type list line state point case fact house home work works team game play read write talk speak call called words word text message page site link january february march april june july august september october november december among anywhere somewhere incl including include cents pays fill free',
)

/** Words of English that a question about something else than trading has. */
export const offTopicWords = wordSet(
  'color sea poem france capital country city water food music movie weather joke story book recipe sports football house home team game',
)

/**
 * Symbols that are English words too; such a word is an asset in capitals, with a dollar sign, or where an asset is
 * expected.
 */
export const commonSymbols = wordSet(
  'near one gas link me get go do not for on real fun safe people cat dog just her him all any can trust cash gold win play now new big art ray mask super story magic high time move beam prime core form hot ten rose sun lit cow bat ant band key loom moon uni gala sand flow op id not ip s h',
)

export const nicknames = {
  assets: byWord({
    BTC: 'bitcoin|bitcoins|btcs',
    ETH: 'ethereum|ether|eths',
    SOL: 'solana|sols',
    HYPE: 'hyperliquid',
    DOGE: 'dogecoin|doge',
    XRP: 'ripple',
    AVAX: 'avalanche',
    LINK: 'chainlink',
    USDT: 'tether',
    USDC: 'usd coin|usdcs',
    AERO: 'aerodrome',
    WIF: 'dogwifhat',
    JUP: 'jupiter',
    POL: 'matic',
  }),
  chains: byWord({
    ethereum: 'eth|mainnet|eth mainnet|ethereum mainnet',
    arbitrum: 'arb|arbitrum one',
    solana: 'sol',
    polygon: 'poly|matic',
    base: 'base chain',
  }),
}

/** Contractions and short spellings, by the full words that they stand for. */
export const contractions: ReadonlyMap<string, string> = byWord({
  'what is': "what's|whats",
  'how is': "how's|hows",
  'where is': "where's|wheres",
  'who is': "who's",
  'when is': "when's",
  'it is': "it's",
  'that is': "that's",
  'there is': "there's",
  'i am': "i'm|im",
  'i have': "i've|ive",
  'i would': "i'd",
  'i will': "i'll",
  'we are': "we're",
  'you are': "you're",
  'they are': "they're",
  lets: "let's",
  'do not': "don't|dont",
  cannot: "can't|cant",
  'will not': "won't|wont",
  'is not': "isn't|isnt",
  'are not': "aren't",
  'does not': "doesn't|doesnt",
  'did not': "didn't|didnt",
  'should not': "shouldn't",
  'would not': "wouldn't",
  'could not': "couldn't",
  'have not': "haven't",
  'has not': "hasn't",
  'must not': "mustn't",
  you: 'u',
  your: 'ur',
  'give me': 'gimme',
  please: 'pls|plz',
  thanks: 'thx',
  what: 'wat|wht',
  'he is': "he's",
  'she is': "she's",
  'we will': "we'll",
  'was not': "wasn't",
  'were not': "weren't",
  'could have': "could've",
  'would have': "would've",
  'should have': "should've",
  'who would': "who'd",
})

export const withoutPossessive = (word: string): string => word.replace(/'s?$/, '')
export const isPlural = (words: string): boolean => words.endsWith('s') && !words.endsWith('ss')

/** A clause that begins with one of these words is a question. */
export const questionWords = wordSet(
  'what which how who whose where why is are am do does did can will would should has have was were any could whether',
)
/** Little words that change nothing about an order, and so need no meaning. */
export const harmlessWords = wordSet(
  'me us i it you of by back bag bags stack existing current own total value amount size equivalent together both',
)
/** Words before a name that is counted: `any link`, `how many link`. */
export const countingWords: ReadonlySet<string> = new Set(['any', 'many', 'much', 'how many', 'how much'])
/** Words behind a name which then is the name of a chain: `solana wallet`, `base account`. */
export const placeWords = wordSet('wallet wallets side mainnet account')
/** A leading word that does not belong to the name behind it. */
export const leadingWords = /^(the|a|an|my) /
export const months =
  'january february march april may june july august september october november december'.split(' ')
export const weekdays = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ')

/** Words of a message about a prediction market that say nothing about its question, so that they are not searched for. */
export const unsearchedWords = wordSet(
  'the a an and or of to in on at for from with by as is are was be i you he she we they me him us my your his their it its that this these those what which who when where how much many will would should can could do does did please show tell find look list give get want any some there chance chances likely probability market markets price prices cost bet bets odds position positions share shares have has happen happens next into out all half redeem claim collect sell buy place put make outcome outcomes about',
)
