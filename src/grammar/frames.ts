import type { Frame } from './frame.ts'
import { accountFrames } from './frames-account.ts'
import { earnFrames } from './frames-earn.ts'
import { marketFrames, researchFrames, tokenFrames } from './frames-market.ts'
import { orderFrames } from './frames-orders.ts'
import { perpFrames } from './frames-perp.ts'
import { earnReadFrames, perpReadFrames, portfolioFrames } from './frames-portfolio.ts'
import { spotFrames } from './frames-spot.ts'
import { swapFrames } from './frames-swap.ts'
import { refusalFrames, talkFrames } from './frames-talk.ts'

/** Every intent of the chat, as a frame. A read stands before an order, so that the read wins a tie. */
export const frames: readonly Frame[] = [
  marketFrames,
  researchFrames,
  tokenFrames,
  portfolioFrames,
  perpReadFrames,
  earnReadFrames,
  accountFrames,
  talkFrames,
  refusalFrames,
  swapFrames,
  orderFrames,
  perpFrames,
  spotFrames,
  earnFrames,
].flat()

export const frameOf = (intent: string): Frame | undefined => frames.find((frame) => frame.intent === intent)
