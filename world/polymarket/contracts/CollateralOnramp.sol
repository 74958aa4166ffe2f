// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";
import {Ramp} from "./shared/Ramp.sol";
import {PolymarketUsd} from "./PolymarketUsd.sol";

/// USDC or USDC.e in, the venue's dollar out.
contract CollateralOnramp is Ramp {
    using SafeERC20 for IERC20;

    function wrap(address asset, address to, uint256 amount) external whenOpen(asset) {
        IERC20(asset).safeTransferFrom(msg.sender, address(this), amount);
        IERC20(asset).forceApprove(Addresses.PUSD, amount);
        PolymarketUsd(Addresses.PUSD).wrap(asset, to, amount);
    }
}
