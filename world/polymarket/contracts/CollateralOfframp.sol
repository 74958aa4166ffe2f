// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";
import {Ramp} from "./shared/Ramp.sol";
import {PolymarketUsd} from "./PolymarketUsd.sol";

/// The venue's dollar in, USDC or USDC.e out.
contract CollateralOfframp is Ramp {
    using SafeERC20 for IERC20;

    function unwrap(address asset, address to, uint256 amount) external whenOpen(asset) {
        IERC20(Addresses.PUSD).safeTransferFrom(msg.sender, address(this), amount);
        PolymarketUsd(Addresses.PUSD).unwrap(asset, to, amount);
    }
}
