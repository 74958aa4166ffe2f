// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";
import {DollarDesk} from "./DollarDesk.sol";

/// Holds what backs the venue's dollar. What it lacks of one asset it gets for the other.
contract DollarVault {
    using SafeERC20 for IERC20;

    error NotTheDollar(address caller);

    function pay(address asset, address to, uint256 amount) external {
        require(msg.sender == Addresses.PUSD, NotTheDollar(msg.sender));
        uint256 held = IERC20(asset).balanceOf(address(this));
        if (held < amount) {
            address other = asset == Addresses.USDC ? Addresses.USDCE : Addresses.USDC;
            IERC20(other).forceApprove(Addresses.DOLLAR_DESK, amount - held);
            DollarDesk(Addresses.DOLLAR_DESK).exchange(other, asset, amount - held);
        }
        IERC20(asset).safeTransfer(to, amount);
    }
}
