import type { Frame } from './intent-frame.ts'
import { accountFrames } from './intents-account.ts'
import { earnFrames } from './intents-earn.ts'
import { marketFrames, researchFrames, tokenFrames } from './intents-market.ts'
import { marketFactFrames } from './intents-market-facts.ts'
import { orderFrames } from './intents-orders.ts'
import { perpFrames } from './intents-perp.ts'
import { earnReadFrames, perpReadFrames, portfolioFrames } from './intents-portfolio.ts'
import { predictionFrames, predictionReadFrames } from './intents-predictions.ts'
import { spotFrames } from './intents-spot.ts'
import { sumFrames } from './intents-sums.ts'
import { swapFrames } from './intents-swap.ts'
import { refusalFrames, talkFrames } from './intents-talk.ts'

/** Every intent of the chat, as a frame. Reads are listed before orders, so that a read wins if both score alike. */
export const frames: readonly Frame[] = [
  marketFrames,
  marketFactFrames,
  researchFrames,
  tokenFrames,
  sumFrames,
  portfolioFrames,
  perpReadFrames,
  earnReadFrames,
  predictionReadFrames,
  accountFrames,
  talkFrames,
  refusalFrames,
  swapFrames,
  orderFrames,
  perpFrames,
  spotFrames,
  earnFrames,
  predictionFrames,
].flat()

export const frameOf = (intent: string): Frame | undefined => frames.find((frame) => frame.intent === intent)
